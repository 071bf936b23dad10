"""Which of the controllers' requests are heard, whenever they arrive."""

import pytest

from kavka.broker.partitions.controller_epoch import UNNUMBERED, ControllerEpoch


@pytest.mark.parametrize(
    ("request_of", "is_heard"),
    [
        ((4, 20, 9), False),
        ((5, 20, 6), False),
        ((5, 20, 7), True),
        ((5, 20, UNNUMBERED), True),
        ((5, 19, 9), False),
        ((5, 19, UNNUMBERED), False),
        ((5, -1, 0), True),
        ((5, 21, 0), True),
        ((6, 19, 0), True),
    ],
)
def test_what_was_sent_before_another_request_is_not_heard_after_it(
    request_of: tuple[int, int, int], is_heard: bool
) -> None:
    """By an earlier controller, in its order, or to an earlier registration of this broker."""
    heard = ControllerEpoch()
    assert heard.admits(5, 20, 7)

    assert heard.admits(*request_of) is is_heard
