"""Client quotas altered and described. One entity at a time is shown: the order of several is no part of the answer."""

from collections.abc import Mapping, Sequence

from kavka.protocol.api import ApiKey
from kavka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from kavka.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from tests.integration.oracle.answers.stage import KAFKA_39, Stage, scenario

EXACT, DEFAULT, ANY = 0, 1, 2
Names = Sequence[tuple[str, str | None]]
FAR_OFF = 1e12


def entry(names: Names, values: Mapping[str, float | None]) -> AlterClientQuotasRequestEntryData:
    return AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in names],
        ops=[
            OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in values.items()
        ],
    )


def alter(
    stage: Stage, label: str, names: Names, values: Mapping[str, float | None], *, validate_only: bool = False
) -> None:
    request = AlterClientQuotasRequest(entries=[entry(names, values)], validate_only=validate_only)
    stage.ask(label, request, stage.version)


def describe(stage: Stage, label: str, *components: tuple[str, int, str | None], strict: bool = False) -> None:
    rows = [ComponentData(entity_type=kind, match_type=match, match=name) for kind, match, name in components]
    stage.ask(label, DescribeClientQuotasRequest(components=rows, strict=strict), stage.version)


@scenario(ApiKey.ALTER_CLIENT_QUOTAS, oracles=[KAFKA_39])
def quotas_are_altered_and_described(stage: Stage) -> None:
    user, client = f"{stage.name} a*b/c", f"{stage.name}.client"
    alter(stage, "a user's", [("user", user)], {"producer_byte_rate": FAR_OFF})
    describe(stage, "exactly", ("user", EXACT, user), strict=True)
    alter(stage, "another of his", [("user", user)], {"request_percentage": 1e7})
    describe(stage, "others' too", ("user", EXACT, user))
    alter(stage, "both's", [("user", user), ("client-id", client)], {"consumer_byte_rate": FAR_OFF})
    describe(stage, "of both", ("user", EXACT, user), ("client-id", EXACT, client))
    describe(stage, "of both, any client", ("user", EXACT, user), ("client-id", ANY, None), strict=True)
    describe(stage, "of the client alone", ("client-id", EXACT, client), strict=True)
    describe(stage, "of the user's default client", ("user", EXACT, user), ("client-id", DEFAULT, None))
    alter(stage, "only looked at", [("user", user)], {"producer_byte_rate": None}, validate_only=True)
    describe(stage, "as it was", ("user", EXACT, user), strict=True)
    alter(stage, "all gone", [("user", user)], {"producer_byte_rate": None, "request_percentage": None})
    describe(stage, "nothing left", ("user", EXACT, user), strict=True)
    alter(stage, "gone before", [("user", user), ("client-id", client)], {"consumer_byte_rate": None})
    alter(stage, "never there", [("client-id", client)], {"consumer_byte_rate": None, "no.such": None})
    describe(stage, "nobody", ("user", EXACT, f"{user}.no"), strict=True)


@scenario(ApiKey.ALTER_CLIENT_QUOTAS, oracles=[KAFKA_39])
def addresses_have_quotas_of_their_own(stage: Stage) -> None:
    alter(stage, "an address", [("ip", "127.9.9.9")], {"connection_creation_rate": 1e6})
    describe(stage, "shown", ("ip", EXACT, "127.9.9.9"))
    alter(stage, "a client's quota", [("ip", "127.9.9.9")], {"producer_byte_rate": FAR_OFF})
    alter(stage, "too large", [("ip", "127.9.9.9")], {"connection_creation_rate": 1e10})
    alter(stage, "no address", [("ip", "no such host")], {"connection_creation_rate": 1.0})
    alter(stage, "gone", [("ip", "127.9.9.9")], {"connection_creation_rate": None})
    describe(stage, "nothing", ("ip", EXACT, "127.9.9.9"))


@scenario(ApiKey.ALTER_CLIENT_QUOTAS, oracles=[KAFKA_39])
def quotas_that_cannot_be_are_refused(stage: Stage) -> None:
    user = [("user", f"{stage.name}.user")]
    alter(stage, "no entity", [], {"producer_byte_rate": FAR_OFF})
    alter(stage, "unknown type", [("group", "g")], {"producer_byte_rate": FAR_OFF})
    alter(stage, "no name", [("user", "")], {"producer_byte_rate": FAR_OFF})
    alter(stage, "an address and a user", [("ip", "127.0.0.1"), *user], {"producer_byte_rate": FAR_OFF})
    alter(stage, "unknown quota", user, {"no.such": 1.0})
    alter(stage, "an address' quota", user, {"connection_creation_rate": 1.0})
    alter(stage, "no whole number", user, {"consumer_byte_rate": 1.5})
    alter(stage, "nearly a whole number", user, {"consumer_byte_rate": FAR_OFF + 1e-8}, validate_only=True)
    describe(stage, "nothing stays", ("user", EXACT, user[0][1]))
    both = AlterClientQuotasRequest(
        entries=[entry(user, {"no.such": 1.0}), entry([("user", user[0][1] + "2")], {"consumer_byte_rate": FAR_OFF})],
        validate_only=True,
    )
    stage.ask("each goes its own way", both, stage.version)


@scenario(ApiKey.DESCRIBE_CLIENT_QUOTAS, oracles=[KAFKA_39])
def filters_that_cannot_be_are_refused(stage: Stage) -> None:
    describe(stage, "empty type", ("", EXACT, "x"))
    describe(stage, "unknown type", ("group", EXACT, "x"))
    describe(stage, "twice", ("user", EXACT, "x"), ("user", EXACT, "y"))
    describe(stage, "a client twice", ("client-id", ANY, None), ("client-id", EXACT, "y"))
    describe(stage, "an address and a user", ("ip", EXACT, "127.0.0.1"), ("user", EXACT, "y"))
    describe(stage, "strictly nothing", strict=True)
