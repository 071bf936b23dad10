"""A thread that dies stops the whole broker, in order: half a broker is worse than none."""

import contextlib
from pathlib import Path

import pytest

from tests.support.dying_broker import MORTAL, DyingBroker
from tests.support.kavka_process import KavkaProcess
from tests.support.wire import Wire, batch_of, create_topic, fetch_request, produce, read_values

NOW_MS = 1_800_000_000_000
TIMEOUT_S = 60.0


@pytest.mark.parametrize("kind", MORTAL)
def test_a_thread_that_dies_stops_the_broker_and_costs_nothing(tmp_path: Path, kind: str) -> None:
    with DyingBroker(tmp_path, kind) as broker:
        broker.expected_exit_code = 1
        with Wire(broker.host, broker.port) as wire:
            create_topic(wire, "visits")
            produce(wire, "visits", batch_of([b"kept"], timestamp_ms=NOW_MS))
            broker.die()
            # One more of whatever the thread is there for: a connection, a request, a wait that ends by the clock.
            with contextlib.suppress(OSError), Wire(broker.host, broker.port) as other:
                other.ask(fetch_request("visits", offset=1, max_wait_ms=50), 12)
            assert broker.process.wait(TIMEOUT_S) == 1
        log = broker.process.log_text()

    assert f'msg="a thread died" thread={"timer" if kind == "timer" else kind + "-"}' in log
    assert "DeathError" in log
    assert 'msg="stopping" reason=' in log
    assert log.rstrip().endswith('msg="stopped"')
    assert (broker.log_dir / ".kafka_cleanshutdown").exists()
    with KavkaProcess(tmp_path) as again, Wire(again.host, again.port) as wire:
        assert read_values(wire, "visits") == [b"kept"]
