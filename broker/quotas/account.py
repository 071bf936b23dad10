"""What is counted for one client."""

from typing import Final, NamedTuple

from kavka.broker.quotas.meters import Meter, MutationMeter


class Account(NamedTuple):
    """The meters of one user and client id: None where nobody has a quota of that kind."""

    produce: Meter | None
    fetch: Meter | None
    request: Meter | None
    mutation: MutationMeter | None


NOTHING: Final = Account(None, None, None, None)
