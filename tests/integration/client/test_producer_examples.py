"""What docs/client.md and docstrings show of producing runs as it stands."""

import asyncio
import inspect
import re
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest

from kavka.client import Producer
from kavka.client.consumer.group.port import ConsumerGroupMetadata
from kavka.client.interceptors import ProducerInterceptor
from kavka.client.producer.partitioners import Partitioner
from kavka.client.topic_partition import TopicPartition
from tests.integration.client.test_producer import create
from tests.support.console_blocks import ROOT

SHOWN = "localhost:9092"


def blocks(text: str) -> list[str]:
    """What is indented by four spaces: programs."""
    found = re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", text, re.MULTILINE)
    return [dedent(block) for block in found]


def section(title: str) -> str:
    page = (ROOT / "docs" / "client.md").read_text()
    return page.split(f"## {title}\n")[1].split("\n## ")[0] + "\n"


def run(code: str, bootstrap: str, namespace: dict[str, Any]) -> None:
    exec(compile(code.replace(SHOWN, bootstrap), "example", "exec"), namespace)


def test_the_pages_programs_run(bootstrap: str, topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        namespace: dict[str, Any] = {"Producer": Producer, "producer": producer}
        first, *others = blocks(section("Producing"))
        run(first, bootstrap, {})
        for code in others:
            run(code, bootstrap, namespace)
        producer.flush()
    out = capsys.readouterr().out.split()
    assert out[0].isdecimal()
    assert out[1].startswith("visits-")


def test_a_transaction_runs_as_shown(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    group = ConsumerGroupMetadata(f"group-{topic}")
    namespace: dict[str, Any] = {
        "Producer": Producer,
        "positions": {TopicPartition(topic, 0): 1},
        "consumer": SimpleNamespace(group_metadata=lambda: group),
    }
    for code in blocks(section("Exactly once")):
        run(code.replace("billing", f"billing-{topic}").replace('"bills"', f'"{topic}"'), bootstrap, namespace)
    namespace["producer"].close()


def test_docstrings_run(bootstrap: str, topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(blocks(inspect.cleandoc(Producer.__doc__ or "") + "\n")[0], bootstrap, {})
    namespace: dict[str, Any] = {"Producer": Producer, "ProducerInterceptor": ProducerInterceptor}
    run("import zlib\n" + blocks(inspect.cleandoc(Partitioner.__doc__ or "") + "\n")[0], bootstrap, namespace)
    with namespace["producer"] as by_site:
        assert by_site.send("birds", b"", partition_key="kavka.example").result(60).offset >= 0
    (interceptor,) = blocks(inspect.cleandoc(ProducerInterceptor.__doc__ or "") + "\n")
    run(interceptor, bootstrap, namespace)
    with Producer(bootstrap_servers=bootstrap, interceptor_classes=namespace["Counting"]) as counted:
        counted.send("birds", b"").result(60)
    assert "birds" in capsys.readouterr().out


def test_a_future_is_used_as_shown(bootstrap: str, topic: str) -> None:
    async def body() -> int:
        with Producer(bootstrap_servers=bootstrap) as producer:
            first = producer.send(topic, b"kavka").result(timeout=60)
            second = await producer.send(topic, b"jackdaw")
            return second.offset - first.offset if first.partition == second.partition else 1

    assert asyncio.run(body()) == 1
