"""What the programs that measure clients have in common: their loads, and a process for each client."""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

TIMEOUT_S: Final = 600


class Load(NamedTuple):
    """What is sent, or read."""

    bootstrap: str
    topic: str
    records: int
    size_bytes: int
    codec: str
    a_batch: int = 0
    """Records in each batch; 0 for as many as fit."""


def load_parser(text: str | None, topic: str, records: int, clients: Sequence[str]) -> argparse.ArgumentParser:
    """The command line of such a program. With --client it is one that another has started: see `measured`."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default="localhost:9092")
    parser.add_argument("--topic", default=topic)
    parser.add_argument("--records", type=int, default=records)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--codecs", nargs="+", default=["none", "lz4"])
    parser.add_argument("--clients", nargs="+", choices=clients, default=clients)
    parser.add_argument("--client", choices=clients, help=argparse.SUPPRESS)
    parser.add_argument("--load", type=_load, help=argparse.SUPPRESS)
    return parser


def loads_of(given: argparse.Namespace, small_bytes: int) -> Iterator[Load]:
    """One for each size and codec; of records larger than `small_bytes` fewer, so that a run takes about as long."""
    for size in given.sizes:
        for codec in given.codecs:
            yield Load(given.bootstrap, given.topic, given.records * small_bytes // max(size, small_bytes), size, codec)


def measured(module: str, client: str, load: Load, *flags: str) -> list[float]:
    """What a process of this program prints of one client and load. Raises CalledProcessError, TimeoutExpired."""
    command = [sys.executable, "-m", module, "--client", client, "--load", json.dumps(load), *flags]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=True)
    return [float(word) for word in done.stdout.split()]


def show_rates(rates: Mapping[str, float]) -> None:
    """Records a second of processor time, by client."""
    for client, rate in rates.items():
        if not rate:
            print(f"  {client:13}        - all came at once: more --records are wanted", flush=True)
            continue
        ratio = f"   kavka {rates['kavka'] / rate:5.2f} x" if "kavka" in rates else ""
        print(f"  {client:13} {rate / 1000:8.0f} thousand records a CPU second{ratio}", flush=True)


def _load(text: str) -> Load:
    return Load(*json.loads(text))
