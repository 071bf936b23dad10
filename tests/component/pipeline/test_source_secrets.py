"""References to secrets in a client's settings are looked up where the client is made, whichever it is."""

from collections.abc import Callable

import pytest

from kavka.pipeline.secret_references import SecretError
from kavka.pipeline.source.broker_logs import BrokerLogs
from kavka.pipeline.source.write_options import WriteOptions
from kavka.pipeline.source.writing import written

SETTINGS = {"bootstrap.servers": "localhost:1", "client.id": "${env:KAVKA_NO_SUCH_SECRET}"}


@pytest.mark.parametrize(
    "connect",
    [
        lambda: BrokerLogs(SETTINGS, is_committed=True).close(),
        lambda: written(iter(()), WriteOptions(SETTINGS, "visits")),
    ],
    ids=["bounds", "writing"],
)
def test_each_client_looks_up_its_secrets(connect: Callable[[], object]) -> None:
    with pytest.raises(SecretError, match=r"client\.id: \$\{env:KAVKA_NO_SUCH_SECRET\}: there is no variable"):
        connect()
