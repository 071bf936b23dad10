"""Which messages of a writer's schema can be read by a reader's, and what is lost then. Fields go by their numbers."""

from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

_SAME_BYTES: Final = {
    "INT32": {"INT64"},
    "UINT32": {"UINT64", "INT64"},
    "BOOL": {"INT32", "INT64", "UINT32", "UINT64"},
    "ENUM": {"INT32", "INT64"},
    "SINT32": {"SINT64"},
    "STRING": {"BYTES"},
    "BYTES": {"STRING"},
}
"""Types that read each other's bytes without loss, as the specification's "Updating A Message Type" says."""
_NAMES: Final = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_")
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}


class Comparison:
    """`misfits` are reasons why values cannot be read; `unseen` is what would not be, by path."""

    def __init__(self, writer: Any, reader: Any) -> None:
        self.misfits: Final[list[str]] = []
        self.unseen: Final[list[str]] = []
        self._seen: set[tuple[str, str]] = set()
        self._messages(writer, reader, "")

    def _messages(self, writer: Any, reader: Any, path: str) -> None:
        pair = (writer.full_name, reader.full_name)
        if pair in self._seen:
            return
        self._seen.add(pair)
        for field in writer.fields:
            place = f"{path}{field.name}"
            read = reader.fields_by_number.get(field.number)
            if read is None:
                self.unseen.append(place)
                continue
            kinds = _NAMES[field.type], _NAMES[read.type]
            if kinds[0] != kinds[1] and kinds[1] not in _SAME_BYTES.get(kinds[0], ()):
                self.misfits.append(
                    f"{place}: what was written as {kinds[0].lower()} cannot be read as {kinds[1].lower()}"
                )
            elif field.is_repeated and not read.is_repeated:
                self.misfits.append(f"{place}: what was written repeated cannot be read as one")
            elif field.message_type is not None:
                self._messages(field.message_type, read.message_type, f"{place}.")
