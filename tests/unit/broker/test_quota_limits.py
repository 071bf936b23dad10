"""Whose quota holds for whom, whose use counts together, and the texts that quotas are stored as."""

import itertools
import random

import pytest

from kavka.broker.quotas.altering import QuotaChange, entity_of, update_of
from kavka.broker.quotas.charging import Mutations
from kavka.broker.quotas.fetch_sizes import fetch_size_bytes
from kavka.broker.quotas.keys import client_limits, double_text, ip_limit
from kavka.broker.quotas.limits import LONGEST_NAME, UNLIMITED, Entity, Limits, Tags, counted_name
from kavka.broker.quotas.limits import entity_of as entity_of_path
from kavka.broker.quotas.meters import MOST_MS, Meter, Meters, MutationMeter, pause_ms
from kavka.broker.quotas.quotas import Quotas
from kavka.broker.quotas.samples import Window
from kavka.cluster.controller.requests import ConfigEntity
from kavka.cluster.znodes.config import node_name
from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import ConfigError
from kavka.protocol.codec import encode
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)

DEFAULT = "<default>"
ORDER = (
    Entity("u", "c"),
    Entity("u", DEFAULT),
    Entity("u", None),
    Entity(DEFAULT, "c"),
    Entity(DEFAULT, DEFAULT),
    Entity(DEFAULT, None),
    Entity(None, "c"),
    Entity(None, DEFAULT),
)
WINDOW = Window(11, 1000)


def limits_of(*entities: Entity) -> Limits:
    """Each entity's quota is its place in ORDER."""
    limits = Limits()
    for entity in entities:
        limits.update(entity, float(ORDER.index(entity)))
    return limits


def test_the_most_specific_of_the_eight_holds() -> None:
    for size in range(1, 9):
        for entities in itertools.combinations(ORDER, size):
            limits = limits_of(*entities)
            tags = limits.tags("u", "c")
            assert limits.limit(tags) == min(ORDER.index(each) for each in entities)
            found = ORDER[int(limits.limit(tags))]
            assert tags == Tags("u" if found.user else "", "c" if found.client else "")


def test_others_have_the_defaults_and_are_counted_apart() -> None:
    limits = limits_of(Entity("u", "c"), Entity(DEFAULT, DEFAULT), Entity(None, "c"))

    assert (limits.tags("x", "y"), limits.limit(limits.tags("x", "y"))) == (Tags("x", "y"), 4.0)
    limits.update(Entity(DEFAULT, DEFAULT), None)
    assert (limits.tags("x", "c"), limits.limit(limits.tags("x", "c"))) == (Tags("", "c"), 6.0)
    assert (limits.tags("x", "y"), limits.limit(limits.tags("x", "y"))) == (Tags("", "y"), UNLIMITED)


def test_nobody_has_a_quota_by_having_no_name() -> None:
    limits = limits_of(Entity(None, DEFAULT))

    assert limits.limit(limits.tags("u", "")) == UNLIMITED


def test_paths_name_entities_and_others_name_none() -> None:
    assert entity_of_path("users/a%20b") == Entity("a%20b", None)
    assert entity_of_path("users/<default>/clients/c") == Entity(DEFAULT, "c")
    assert entity_of_path("clients/c") == Entity(None, "c")
    assert [entity_of_path(path) for path in ("topics/t", "users/u/clients", "ips/i")] == [None] * 3


def test_a_meter_goes_by_a_quota_that_changes_and_new_ones_by_the_new_one() -> None:
    meters: Meters[Meter] = Meters(Meter, WINDOW)
    assert meters.meter_of("u", "c", 0) is None
    meters.update(Entity(None, DEFAULT), 10)
    meter = meters.meter_of("u", "c", 0)
    assert meter is not None
    assert meter.record(1000, 0) == pause_ms(100, 10, 10_000) == 90_000

    meters.update(Entity(None, "c"), 1000)
    assert meter.record(1, 0) == 0
    assert meters.meter_of("v", "c", 0) is meter


def test_meters_that_nobody_would_miss_go_and_those_with_debts_stay() -> None:
    meters: Meters[MutationMeter] = Meters(MutationMeter, WINDOW)
    meters.update(Entity(None, DEFAULT), 0.001)
    idle, owing = meters.meter_of("", "idle", 0), meters.meter_of("", "owing", 0)
    assert idle is not None
    assert owing is not None
    owing.take(100_000, 0)

    assert not meters.sweep(3_600_000)
    assert meters.sweep(4_000_000)
    assert meters.all() == [owing]


def test_a_quota_of_nothing_pauses_for_as_long_as_can_be_told() -> None:
    assert pause_ms(5, 0, 1000) == pause_ms(1e300, 1e-300, 1000) == MOST_MS
    assert pause_ms(5, -1, 1000) == 0
    assert MutationMeter(Tags("", ""), WINDOW, 0, 0).take(1, 0) == MOST_MS


@pytest.mark.parametrize("limit", [-5e-324, -1e-320, -1.7e308, float("-inf"), float("inf"), 5e-324, 1.7e308, -0.0])
def test_there_is_a_throttle_time_for_any_quota_that_can_be_stored(limit: float) -> None:
    meter, mutations = Meter(Tags("", ""), WINDOW, limit, 0), MutationMeter(Tags("", ""), WINDOW, limit, 0)
    for now_ms in (0, 500, 60_000):
        assert 0 <= meter.record(3.5, now_ms) <= MOST_MS
        assert -MOST_MS <= mutations.take(3, now_ms) <= MOST_MS
        assert -MOST_MS <= mutations.take_strictly(3, now_ms) <= MOST_MS


def test_mutations_are_refused_while_there_is_a_debt_and_the_rest_of_the_time_is_told() -> None:
    now_ms = 0
    meter = MutationMeter(Tags("", ""), Window(2, 1000), 10, 0)
    strict = Mutations(meter, lambda: now_ms, is_strict=True)
    strict.record(25)
    assert strict.throttle_ms == 0
    with pytest.raises(BrokerError) as refused:
        strict.record(1)
    assert refused.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    now_ms = 200
    assert strict.throttle_ms == 300
    permissive = Mutations(meter, lambda: now_ms, is_strict=False)
    permissive.record(10)
    assert permissive.throttle_ms == 1300


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (12.5, "12.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1.5e-7, "1.5E-7"),
        (9_999_999.0, "9999999.0"),
        (10_000_000.0, "1.0E7"),
        (12_345_678.9, "1.23456789E7"),
        (-2.5e22, "-2.5E22"),
        (100.0, "100.0"),
    ],
)
def test_numbers_are_written_as_java_does(number: float, text: str) -> None:
    assert double_text(number) == text
    assert float(text) == number


def test_what_is_stored_is_read_and_other_settings_are_not_looked_at() -> None:
    stored = {
        "producer_byte_rate": "1024",
        "request_percentage": "1.0E7",
        "SCRAM-SHA-256": "salt",
        "consumer_byte_rate": "",
    }
    assert client_limits(stored) == {"producer_byte_rate": 1024.0, "request_percentage": 1e7}
    assert ip_limit({"connection_creation_rate": "7"}) == 7
    assert ip_limit({}) is None
    for key, text in (("producer_byte_rate", "1.5"), ("request_percentage", "x"), ("consumer_byte_rate", "nan")):
        with pytest.raises(ConfigError):
            client_limits({key: text})


def test_changes_keep_what_else_is_stored() -> None:
    entity = entity_of([("user", "a b"), ("client-id", None)])
    assert entity == ConfigEntity("users", "a%20b/clients/<default>")
    update = update_of(entity, [QuotaChange("producer_byte_rate", 10.0), QuotaChange("request_percentage", None)])

    assert update({"SCRAM-SHA-256": "s", "request_percentage": "1.0"}) == {
        "SCRAM-SHA-256": "s",
        "producer_byte_rate": "10",
    }


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "Invalid empty client quota entity"),
        ([("group", "g")], "Unhandled client quota entity type: group"),
        ([("user", "")], "Empty user not supported"),
        ([("ip", None), ("user", "u")], "should not be used with user/client ID entity"),
        ([("ip", "no such host")], "is not a valid IP or resolvable host"),
    ],
)
def test_entities_that_cannot_be_are_refused(names: list[tuple[str, str | None]], message: str) -> None:
    with pytest.raises(BrokerError, match=message) as refused:
        entity_of(names)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("kind", "key", "value", "message"),
    [
        ("users", "SCRAM-SHA-256", 1.0, "Invalid configuration key SCRAM-SHA-256"),
        ("ips", "producer_byte_rate", 1.0, "Invalid configuration key producer_byte_rate"),
        ("clients", "producer_byte_rate", 1.5, "must be a LONG value"),
        ("clients", "producer_byte_rate", 1e30, "must be a LONG value"),
        ("ips", "connection_creation_rate", 3e9, "must be a INT value"),
        ("clients", "request_percentage", float("nan"), "must be a number"),
        ("clients", "producer_byte_rate", float("-inf"), "must be a number"),
    ],
)
def test_quotas_that_cannot_be_are_refused(kind: str, key: str, value: float, message: str) -> None:
    with pytest.raises(BrokerError, match=message) as refused:
        update_of(ConfigEntity(kind, "x"), [QuotaChange(key, value)])
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(18))
def test_the_size_of_an_answer_is_known_before_it_is_made(version: int) -> None:
    source = random.Random(version)
    for _ in range(20):
        topics = []
        shown: list[tuple[str, PartitionData, int]] = []
        for number in range(source.randrange(4)):
            name = f"topic-{number}" * source.randrange(1, 4)
            parts = []
            for index in range(source.randrange(1, 4)):
                records = bytes(source.choice([0, 1, 126, 127, 20_000]))
                aborted = [AbortedTransaction(producer_id=1, first_offset=2)] * source.randrange(3)
                part = PartitionData(
                    partition_index=index,
                    error_code=0,
                    high_watermark=7,
                    aborted_transactions=aborted if version >= 4 else None,
                    records=records,
                )
                parts.append(part)
                shown.append((name, part, len(records)))
            topics.append(FetchableTopicResponse(topic=name, partitions=parts))
        response = FetchResponse(error_code=0, session_id=0, responses=topics)

        assert fetch_size_bytes(version, shown) == 4 + len(encode(response, version))


def test_very_long_names_stand_in_short_and_still_for_one_alone() -> None:
    long = "ä" * 20_000
    names = [long, long + "b", counted_name(long), long[:LONGEST_NAME], "ä" * (LONGEST_NAME + 1)]

    assert len({counted_name(each) for each in names}) == len(names)
    assert max(len(counted_name(each)) for each in names) < 6 * LONGEST_NAME + 100
    assert entity_of_path(f"clients/{node_name(long)}") == Entity(None, counted_name(long))
    assert entity_of_path(f"users/{node_name(long)}/clients/<default>") == Entity(counted_name(long), DEFAULT)


def quotas_of(path: str, stored: dict[str, str]) -> Quotas:
    quotas = Quotas(BrokerConfig({"zookeeper.connect": "h:1"}), lambda: 0, lambda: None)
    quotas.apply(path, stored)
    return quotas


def test_clients_with_long_names_take_no_more_room_than_others() -> None:
    quotas = quotas_of("clients/<default>", {"producer_byte_rate": "10"})
    for number in range(200):
        quotas.account("User:ANONYMOUS", f"{number:0>32000}")

    assert len({meter.tags for meter in quotas.produce.all()}) == 200
    assert sum(len(meter.tags.client) for meter in quotas.produce.all()) < 200 * 1000
    assert sum(len(name) for key in quotas._accounts for name in key) < 200 * 1000


def test_a_quota_for_a_long_name_holds_for_it_alone() -> None:
    name = "/" * 30_000
    quotas = quotas_of(f"clients/{node_name(name)}", {"producer_byte_rate": "10"})

    limits = [quotas.account("User:u", each).produce for each in (name, name + "/", name)]
    assert [meter.limit for meter in limits if meter is not None] == [10, UNLIMITED, 10]
