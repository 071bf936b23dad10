"""Windows in which quotas are measured."""

from __future__ import annotations

from kavka.config.checks import POSITIVE
from kavka.config.setting import Settings, setting
from kavka.config.values import INT


class QuotaSettings(Settings):
    """Windows in which quotas are measured."""

    quota_window_num: int = setting(
        "quota.window.num", INT, 11, "Samples kept of a client's produce, fetch and request rates.", check=POSITIVE
    )
    quota_window_size_seconds: int = setting(
        "quota.window.size.seconds", INT, 1, "The time a sample spans.", check=POSITIVE
    )
    controller_quota_window_num: int = setting(
        "controller.quota.window.num", INT, 11, "Samples kept of the rate of topic changes.", check=POSITIVE
    )
    controller_quota_window_size_seconds: int = setting(
        "controller.quota.window.size.seconds", INT, 1, "The time a sample spans.", check=POSITIVE
    )
