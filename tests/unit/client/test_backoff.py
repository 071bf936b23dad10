import pytest

from kavka.client.backoff import ExponentialBackoff
from kavka.client.reconnecting import Reconnecting
from kavka.client.settings import ClientSettings


def test_delays_double_up_to_their_limit() -> None:
    backoff = ExponentialBackoff(100, 1000, dice=lambda: 0.5)
    assert [backoff.delay_ms(failures) for failures in (1, 2, 3, 4, 5, 1000)] == [100, 200, 400, 800, 1000, 1000]


@pytest.mark.parametrize(("thrown", "share"), [(0.0, 0.8), (0.5, 1.0), (0.999999, 1.2)])
def test_chance_moves_a_delay_by_a_fifth(thrown: float, share: float) -> None:
    assert ExponentialBackoff(100, 1000, dice=lambda: thrown).delay_ms(2) == pytest.approx(200 * share, rel=1e-3)


def test_no_delay_exceeds_the_limit() -> None:
    assert ExponentialBackoff(100, 1000, dice=lambda: 0.999).delay_ms(50) == 1000
    assert ExponentialBackoff(5000, 1000, dice=lambda: 0.999).delay_ms(1) == 1000


def test_a_node_that_opened_is_given_all_its_tries_again() -> None:
    node = Reconnecting(ClientSettings(reconnect_backoff_ms=100, reconnect_backoff_max_ms=10_000))
    for failures in range(1, 5):
        node.failed(1000)
        assert node.failures == failures
    assert 1000 + 640 <= node.not_before_ms <= 1000 + 960

    node.opened()

    assert node.failures == 0
    assert node.not_before_ms == 0
    node.failed(2000)
    assert 2080 <= node.not_before_ms <= 2120


def test_only_attempts_that_took_too_long_make_the_next_one_longer() -> None:
    node = Reconnecting(ClientSettings(connection_setup_timeout_ms=1000, connection_setup_timeout_max_ms=8000))
    node.failed(0)
    assert 800 <= node.setup_timeout_ms() <= 1200
    for _ in range(2):
        node.failed(0, setup_timed_out=True)
    assert 3200 <= node.setup_timeout_ms() <= 4800
    node.opened()
    assert 800 <= node.setup_timeout_ms() <= 1200
