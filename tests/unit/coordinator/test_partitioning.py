"""Where groups live: hashes as Java's String.hashCode gives them."""

import pytest

from kavka.coordinator.partitioning import java_hash, partition_for

HASHES = {
    "": 0,
    "a": 97,
    "group": 98_629_247,
    "console-consumer-12345": 158_455_506,
    "hello world": 1_794_106_052,
    "polygenelubricants": -2_147_483_648,
    "žluťoučký kůň": -75_767_329,
    "鸦": 40_486,
    "\U0001f426": 1_772_425,
    "\ud83d": 55_357,
    "x\udc26": 60_078,
}
"""Printed by Java 17."""


@pytest.mark.parametrize(("text", "expected"), HASHES.items(), ids=ascii)
def test_hashes_are_javas(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_the_smallest_hash_has_no_absolute_value_and_goes_to_partition_0() -> None:
    assert java_hash("polygenelubricants") == -(2**31)
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("polygenelubricants", 7) == 0


def test_negative_hashes_count_by_their_absolute_value() -> None:
    assert partition_for("žluťoučký kůň", 50) == 75_767_329 % 50


def test_the_real_partition_count_decides() -> None:
    assert [partition_for("group", count) for count in (1, 3, 50)] == [0, 98_629_247 % 3, 98_629_247 % 50]
