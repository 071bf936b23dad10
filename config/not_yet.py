"""Settings that Kavka will follow, and does not yet: what each waits for. Nothing reads them; the start's log says so.

Whoever makes what they wait for takes their names out (tests/unit/config/test_rows_are_read.py sees to it).
"""

from __future__ import annotations

from typing import Final

_NAMES: Final[dict[str, tuple[str, ...]]] = {}

NOT_YET: Final = {name: awaited for awaited, names in _NAMES.items() for name in names}
"""Name -> what it waits for."""
