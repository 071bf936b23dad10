"""An administrator's client for verbs under test, which asks no broker."""

from unittest.mock import MagicMock, create_autospec

import pytest

from kavka.client.admin.admin import Admin


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """What `open_admin` gives: calls with a wrong signature fail. Its constructor's argument is `admin.settings`.

    Nobody looks whether a broker listens.
    """
    fake: MagicMock = create_autospec(Admin, instance=True)
    fake.__enter__.return_value = fake

    def made(settings: dict[str, str]) -> MagicMock:
        fake.settings = settings
        return fake

    monkeypatch.setattr("kavka.client.admin.admin.Admin", made)
    monkeypatch.setattr("kavka.cli.reaching.await_broker", lambda _settings, _timeout_ms: None)
    monkeypatch.delenv("KAVKA_BOOTSTRAP_SERVER", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    return fake
