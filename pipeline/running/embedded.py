"""A broker in this process, for jobs that name none: examples, and first tries."""

from collections.abc import Iterator
from contextlib import contextmanager

from kavka.pipeline.running.job_file import Embedded, Job
from kavka.pipeline.running.parts import open_python_path
from kavka.pipeline.running.sink import named


@contextmanager
def embedded_broker(job: Job, embedded: Embedded) -> Iterator[str]:
    """Its address, once the job's own function has filled it. Nothing is left of it."""
    from kavka.testing.broker import Broker

    open_python_path(job)
    fill = named(embedded.fill)
    with Broker(dict(embedded.settings)) as broker:
        fill(broker.bootstrap_servers)
        yield broker.bootstrap_servers
