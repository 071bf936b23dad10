"""CRC-32C (Castagnoli), the checksum of v2 batches and of snapshot files.

`crc32c` uses the processor's instruction and releases the GIL on large input; `crcmod` stands in where no wheel fits
(`pip install kavka[crcmod]`).
Magic 0 and 1 use plain CRC-32: `zlib.crc32`.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any


def crcmod_crc32c() -> "Callable[..., int]":
    """The second opinion: the same function from `crcmod`, taking (data, start=0)."""
    import crcmod.predefined

    castagnoli = crcmod.predefined.mkPredefinedCrcFun("crc-32c")

    def crc32c_of(data: "bytes | bytearray | memoryview", start: int = 0) -> int:
        crc: int = castagnoli(data, start)
        return crc

    return crc32c_of


def _fastest() -> "Callable[..., int]":
    module: Any = _extension_alone()
    if module is None:
        try:
            import crc32c as module
        except ImportError:
            return _stand_in()
    chosen: Callable[..., int] = module.crc32c
    return chosen


def _stand_in() -> "Callable[..., int]":
    try:
        return crcmod_crc32c()
    except ImportError:
        raise ImportError(
            "no module computes CRC-32C here: install crc32c, or where that has no wheel, kavka[crcmod]", name="crc32c"
        ) from None


def _extension_alone() -> object | None:
    """The C module inside the package `crc32c`, whose own `__init__` loads argparse and importlib.metadata.

    Those are 30 ms and more of a start-up, for a command line and a version text. None if the package looks different.
    """
    package = PathFinder.find_spec("crc32c")
    places = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("_crc32c", places) if places else None
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module if hasattr(module, "crc32c") else None


crc32c = _fastest()
"""`crc32c(data, start=0)`: pass an earlier result as `start` to go on from there."""
