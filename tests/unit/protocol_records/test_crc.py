"""CRC-32C and xxHash32 against published values and each other."""

import importlib.util
import sys
from importlib.machinery import PathFinder
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.protocol.records import crc as crc_module
from kavka.protocol.records.crc import crc32c, crcmod_crc32c
from kavka.protocol.records.xxhash32 import xxh32


def test_crc32c_of_the_published_check_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_both_implementations_agree_also_in_two_steps(first: bytes, second: bytes) -> None:
    second_opinion = crcmod_crc32c()

    assert crc32c(first + second) == second_opinion(first + second)
    assert crc32c(second, crc32c(first)) == second_opinion(second, second_opinion(first)) == crc32c(first + second)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_both_implementations_take_any_buffer(kind: type[bytes]) -> None:
    assert crc32c(kind(b"123456789")) == crcmod_crc32c()(kind(b"123456789")) == 0xE3069283


def reloaded() -> ModuleType:
    """crc.py loaded once more, under the conditions that the test has made."""
    spec = importlib.util.spec_from_file_location("crc_again", crc_module.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_package_of_another_shape_is_imported_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PathFinder, "find_spec", lambda *_: None)
    monkeypatch.setitem(sys.modules, "crc32c", SimpleNamespace(crc32c=lambda data, start=0: 42))

    assert reloaded().crc32c(b"") == 42


def test_crcmod_stands_in_where_crc32c_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import crcmod.predefined  # noqa: F401  loaded before the finder goes blind

    monkeypatch.setattr(PathFinder, "find_spec", lambda *_: None)
    monkeypatch.setitem(sys.modules, "crc32c", None)

    module = reloaded()

    assert module.crc32c(b"123456789") == 0xE3069283
    assert module.crc32c(memoryview(b"6789"), module.crc32c(b"12345")) == 0xE3069283
    assert "crcmod" in repr(module.crc32c)


def test_where_there_is_neither_the_complaint_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PathFinder, "find_spec", lambda *_: None)
    for name in ("crc32c", "crcmod", "crcmod.predefined"):
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(ImportError, match=r"install crc32c, or .* kavka\[crcmod\]"):
        reloaded()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"Nobody inspects the spammish repetition", 0xE2293B2F),
    ],
)
def test_xxh32_of_published_values(data: bytes, expected: int) -> None:
    assert xxh32(data) == expected
