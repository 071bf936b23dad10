"""Secrets by reference: `${env:NAME}` and `${file:PATH}` stand for what is looked up when it is needed, and not before.

Job files, plans, logs, checkpoints and manifests hold the reference. Whoever makes a client, in the driver or in a
worker of Spark's, resolves its settings right there, and keeps what came of it nowhere else. A worker needs the
variable or the file on its own machine.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

Value = TypeVar("Value")
_REFERENCE: Final = re.compile(r"\$\{(env|file):([^${}]+)\}")
_LIKE_ONE: Final = re.compile(r"\$\{[^}]*\}?")
_SECRET_KEY: Final = re.compile(
    r"(^|[._-])(password|passwd|passphrase|token|secret|credentials?|authorization|connection[._-]?string"
    r"|secret[._-]?(access[._-]?)?key|(private|api|shared)[._-]?key|account[._-]key([.].*)?)$|ssl[.]keystore[.]key$",
    re.IGNORECASE,
)
"""Of Kafka's clients, of pyiceberg's catalogs and of Hadoop's file systems."""
SECRET_WORDS: Final = (
    "secret|passw|passphrase|token|jaas|credential|authorization|connection[._-]?string"
    "|(access|account|private|api|shared)[._-]?key|keystore[.]key"
)
"""One of these is in each name of a secret, and in others. As Java, too, writes it."""
_SECRET_IN_URL: Final = re.compile(r"://[^/@\s:]*:(?!\$\{)[^/@\s]+@")
_JAAS_KEY: Final = re.compile(r"(^|[._-])jaas([._-]|$)", re.IGNORECASE)
_SECRET_IN_JAAS: Final = re.compile(r"(password|secret|token)\w*\s*=\s*(?![\"']?\$\{)", re.IGNORECASE)
MOST_BYTES: Final = 64 * 1024


class SecretError(ValueError):
    """What a reference names is not there. The text has the reference, never a secret."""


def references(text: str) -> Iterator[str]:
    """The references in a text, as they stand there. Raises SecretError for what only looks like one."""
    for found in _LIKE_ONE.finditer(text):
        if _REFERENCE.fullmatch(found[0]) is None:
            raise SecretError(f"{found[0]} is no reference: write ${{env:NAME}} or ${{file:PATH}}")
        yield found[0]


def check_secret(key: str, value: object) -> None:
    """Whether a setting may be kept as it stands: one that is a secret by its name, or has one in an address, has to
    be a reference.

    Raises SecretError, without the value, and as `references` does.
    """
    is_reference = isinstance(value, str) and any(references(value))
    is_empty = value == "" or isinstance(value, bool)
    is_literal = _SECRET_KEY.search(key) is not None and not is_reference and not is_empty
    is_literal = is_literal or (isinstance(value, str) and _SECRET_IN_URL.search(value) is not None)
    if is_literal or (_JAAS_KEY.search(key) is not None and _SECRET_IN_JAAS.search(str(value)) is not None):
        raise SecretError("a secret does not stand in a job file: write ${env:NAME} or ${file:PATH} in its place")


def resolved(text: str) -> str:
    """The text with secrets in place of references. Raises SecretError."""
    list(references(text))
    return _REFERENCE.sub(_looked_up, text)


def resolved_settings(settings: Mapping[str, Value]) -> dict[str, Value | str]:
    """Each text resolved, the rest as it is. Raises SecretError, with the setting's name."""
    found: dict[str, Value | str] = {}
    for name, value in settings.items():
        try:
            found[name] = resolved(value) if isinstance(value, str) else value
        except SecretError as error:
            raise SecretError(f"{name}: {error}") from None
    return found


def _looked_up(found: "re.Match[str]") -> str:
    kind, name = found[1], found[2]
    if kind == "env":
        if (value := os.environ.get(name)) is None:
            raise SecretError(f"{found[0]}: there is no variable {name}")
        return value
    try:
        with Path(name).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SecretError(f"{found[0]}: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise SecretError(f"{found[0]}: more than {MOST_BYTES} bytes")
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise SecretError(f"{found[0]}: it is no UTF-8") from None
