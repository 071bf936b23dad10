"""Where commands find their brokers: flags, a file of settings, profiles, the environment."""

import argparse
import os
from typing import TYPE_CHECKING, Any, Final

from kavka.cli.failing import Failure
from kavka.cli.settings_text import file_settings

if TYPE_CHECKING:
    from kavka.client import Admin

BOOTSTRAP: Final = "bootstrap.servers"
_ENVIRONMENT: Final = "KAVKA_BOOTSTRAP_SERVER"
_DEFAULT: Final = "localhost:9092"
_TIMEOUT_MS: Final = 30_000


def add_connection_arguments(
    parser: argparse.ArgumentParser, *, broker_list_means_ids: bool = False, with_timeout: bool = True
) -> None:
    """The flags by which a command finds the cluster; `open_admin` and `client_settings` go by them.

    `broker_list_means_ids`: a verb has a --broker-list of its own, as kafka-log-dirs. `with_timeout` is false where
    `--timeout-ms` is something else, as to Kafka's console consumer.
    """
    group = parser.add_argument_group("connection")
    group.add_argument(
        *(("--bootstrap-server",) if broker_list_means_ids else ("--bootstrap-server", "--broker-list")),
        metavar="HOST:PORT[,...]",
        help=f"brokers to ask first; by default the profile's, ${_ENVIRONMENT}, or {_DEFAULT}",
    )
    group.add_argument("--command-config", metavar="FILE", help="a client's settings, as properties")
    group.add_argument(
        "--profile", metavar="NAME", help="settings from ~/.config/kavka/config.toml, by [profiles.NAME]"
    )
    if not with_timeout:
        return
    group.add_argument(
        "--timeout-ms", type=_timeout, metavar="MS", help=f"how long each request may take (default {_TIMEOUT_MS})"
    )


def open_admin(args: argparse.Namespace) -> "Admin":
    """An administrator's client, to be closed: `with open_admin(args) as admin`.

    Raises Failure, also when all brokers refuse connections; ConfigError for settings that cannot be used.
    """
    settings = client_settings(args)
    timeout_ms = args.timeout_ms
    if timeout_ms is None and "default.api.timeout.ms" not in settings:
        timeout_ms = _TIMEOUT_MS
    if timeout_ms is not None:
        settings["default.api.timeout.ms"] = str(timeout_ms)
        settings["request.timeout.ms"] = str(min(timeout_ms, int(settings.get("request.timeout.ms", timeout_ms))))

    from kavka.cli.reaching import await_broker
    from kavka.client.admin.admin import Admin

    admin = Admin(settings)
    try:
        await_broker(settings, args.timeout_ms)
    except BaseException:
        admin.close()
        raise
    return admin


def client_settings(args: argparse.Namespace) -> dict[str, str]:
    """Settings for a Producer or Consumer, by Kafka's names: the profile's, over them the file's, over them the flags'.

    Raises Failure for files that cannot be read or say something else.
    """
    _quiet_logs()
    settings = _profile_settings(args.profile)
    if args.command_config is not None:
        from kavka.cli.unknown_settings import warned

        source = f"--command-config {args.command_config}"
        settings.update(warned(source, file_settings("--command-config", args.command_config)))
    if args.bootstrap_server is not None:
        settings[BOOTSTRAP] = args.bootstrap_server
    elif not settings.get(BOOTSTRAP):
        settings[BOOTSTRAP] = os.environ.get(_ENVIRONMENT) or _DEFAULT
    return settings


def _timeout(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of milliseconds")
    return int(text)


def _quiet_logs() -> None:
    """What the client tries again is nobody's business unless it fails, and then it is said on one line."""
    import logging

    logger = logging.getLogger("kavka")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def _profile_settings(name: str | None) -> dict[str, str]:
    """The named profile's settings; without a name those of `profile = NAME` at the top of the file, if any."""
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111  # pathlib loads long
    path = f"{folder}/kavka/config.toml"
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        if name is not None:
            raise Failure(f"there is no profile {name}: {path} is not there") from None
        return {}
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    import tomllib

    try:
        document = tomllib.loads(data.decode())
    except ValueError as error:
        raise Failure(f"{path}: {error}") from error
    chosen = name if name is not None else document.get("profile")
    if chosen is None:
        return {}
    profile = document.get("profiles", {})
    profile = profile.get(chosen) if isinstance(profile, dict) else None
    if not isinstance(profile, dict):
        raise Failure(f"there is no profile {chosen}", f"{path} needs a table [profiles.{chosen}]")
    from kavka.cli.unknown_settings import warned

    return dict(warned(f"{path}, profile {chosen}", _flat(profile)))


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """`bootstrap.servers = ...` without quotes is a table in a table to TOML."""
    settings: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            settings.update(_flat(value, f"{prefix}{key}."))
        elif isinstance(value, list):
            settings[prefix + key] = ",".join(map(str, value))
        else:
            settings[prefix + key] = str(value).lower() if isinstance(value, bool) else str(value)
    return settings
