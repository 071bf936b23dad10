"""Elements of DER: lengths of all forms, and what is none."""

import pytest

from kavka.client.tls.der import OCTETS, SEQUENCE, element, elements, take

LONG = bytes(300)
WRITTEN = b"\x04\x03abc" + b"\x30\x82\x01\x2c" + LONG


def test_lengths_are_read_in_one_byte_or_more() -> None:
    assert element(WRITTEN) == (OCTETS, b"abc", WRITTEN[5:])
    assert list(elements(WRITTEN)) == [(OCTETS, b"abc"), (SEQUENCE, LONG)]
    assert take(WRITTEN[5:], SEQUENCE) == (LONG, b"")


def test_what_is_cut_short_is_refused_wherever_that_is() -> None:
    for end in (*range(1, 5), *range(6, len(WRITTEN))):
        with pytest.raises(ValueError, match="cut short"):
            list(elements(WRITTEN[:end]))


def test_other_tags_and_lengths_that_are_told_at_the_end_are_refused() -> None:
    with pytest.raises(ValueError, match=r"0x4.*0x30"):
        take(WRITTEN, SEQUENCE)
    with pytest.raises(ValueError, match="DER has not"):
        element(b"\x30\x80\x04\x00\x00\x00")
