"""Compiles the decoder of one (class, version): a single flat function, its loops nested as the message is.

Neighbouring fixed-size fields, and the first byte of the length behind them, are read by one `struct` call. A
compact length is one byte nearly always; only a larger one costs a call. What it generates for a heartbeat:

    def decode(data, pos=0, budget=1000000):
        ...
            o1 = new(c2)
            n3 = data[pos]
            ...
            o1.group_id = data[pos:end].tobytes().decode()
"""

from collections.abc import Callable
from functools import cache
from struct import Struct, error, unpack_from
from typing import Any

from kavka.protocol.errors import DecodeError
from kavka.protocol.layout import FIXED_FORMATS, MAX_ELEMENTS, MAX_STRING_BYTES, FieldLayout, StructLayout
from kavka.protocol.schema import Field
from kavka.protocol.source_writer import SourceWriter
from kavka.protocol.varint import read_varint

SHORT_ARRAY = 9
"""Arrays of fewer numbers than this, such as most replica lists, have a `struct` of their own for each length."""


def compile_decoder(layout: StructLayout, *, trailing: bool) -> Any:
    """`decode(data, position=0, max_elements=...) -> message`; see `codec.decoder`."""
    return _DecoderCompiler(layout, trailing).compile()


class _DecoderCompiler:
    """`pending` holds the fixed-size reads (target, format) that the next `struct` call will do together."""

    def __init__(self, layout: StructLayout, trailing: bool) -> None:
        self.layout = layout
        self.trailing = trailing
        self.pending: list[tuple[str, str]] = []
        self.source = SourceWriter(
            new=object.__new__,
            varint=read_varint,
            unpack_from=unpack_from,
            DecodeError=DecodeError,
            CutShort=(error, IndexError),
        )

    def compile(self) -> Any:
        source, title = self.source, self.layout.title
        with source.block(f"def decode(data, pos=0, budget={MAX_ELEMENTS}):"):
            with source.block("if type(data) is not memoryview:"):
                source.add("data = memoryview(data)")
            source.add("size = len(data)")
            with source.block("try:"):
                message = self.struct(self.layout)
            with source.block("except CutShort as problem:"):
                source.add(f"raise DecodeError({f'{title}: cut short at byte '!r} + str(size)) from problem")
            with source.block("except UnicodeDecodeError as problem:"):
                source.add(f"raise DecodeError({f'{title}: a string is not UTF-8'!r}) from problem")
            if not self.trailing:
                with source.block("if pos != size:"):
                    source.add(f"raise DecodeError(f'{title}: {{size - pos}} bytes too many')")
            source.add(f"return {message}")
        return source.function("decode", f"decoder of {title}")

    def struct(self, layout: StructLayout) -> str:
        """Emits the reading of a struct; returns the variable that holds it."""
        source = self.source
        value = source.variable("o")
        source.add(f"{value} = new({source.constant(layout.schema.cls, 'c')})")
        for field in layout.absent:
            source.add(f"{value}.{field.name} = {self.default(field)}")
        for tagged in layout.tagged:
            source.add(f"{value}.{tagged.name} = {self.default(tagged.field)}")
        for present in layout.regular:
            self.field(layout, present, f"{value}.{present.name}")
        if layout.flexible:
            self.tagged_fields(layout, value)
        else:
            self.flush()
            source.add(f"{value}.unknown_tagged_fields = ()")
        return value

    def default(self, field: Field) -> str:
        if field.fresh_default() is field.default:
            return self.source.constant(field.default)
        return "[]" if field.kind == "array" else f"{self.source.constant(field.struct, 'c')}()"

    def field(self, layout: StructLayout, field: FieldLayout, target: str) -> None:
        if field.kind in FIXED_FORMATS:
            self.pending.append((target, FIXED_FORMATS[field.kind]))
        elif field.kind == "struct" and field.layout is not None:
            self.nested_struct(field, field.layout, target)
        else:
            self.sized(layout, field, field.kind, target, field.nullable)

    def nested_struct(self, field: FieldLayout, layout: StructLayout, target: str) -> None:
        source = self.source
        if not field.nullable:
            self.flush()
            source.add(f"{target} = {self.struct(layout)}")
            return
        marker = source.variable("n")
        self.pending.append((marker, "b"))
        self.flush()
        # Kafka marks a struct in the tagged section with 0 for null, elsewhere with -1; with 1 in both if it is there.
        with source.block(f"if {marker} < {0 if field.tag is None else 1}:"):
            source.add(f"{target} = None")
        with source.block("else:"):
            source.add(f"{target} = {self.struct(layout)}")

    def sized(self, layout: StructLayout, field: FieldLayout, kind: str, target: str, nullable: bool) -> None:
        """A string, bytes, records or array: a length that may stand for null, then the content."""
        source = self.source
        length = source.variable("n")
        if layout.flexible:
            self.compact_length(length)
            with source.block(f"if {length} > 127:"):
                source.add(f"{length}, pos = varint(data, pos)")
                source.add("pos -= 1")
                if kind == "string":
                    with source.block(f"if {length} > {MAX_STRING_BYTES + 1}:"):
                        self.fail(f"{layout.title}: {field.name} is too long")
        else:
            self.pending.append((length, "h" if kind == "string" else "i"))
            self.flush()
        with source.block(f"if {length}:" if layout.flexible else f"if {length} >= 0:"):
            if kind == "array":
                self.array(layout, field, target, length)
            else:
                self.content(layout, field, kind, target, length)
        with source.block("else:"):
            if nullable:
                source.add(f"{target} = None")
                if layout.flexible:
                    source.add("pos += 1")
            else:
                self.fail(f"{layout.title}: {field.name} is null")

    def compact_length(self, length: str) -> None:
        """Reads the first byte of a compact length, leaving `pos` on it: that saves an addition."""
        source = self.source
        if self.pending:
            self.pending.append((length, "B"))
            self.flush(stay_on_last=True)
        else:
            source.add(f"{length} = data[pos]")

    def content(self, layout: StructLayout, field: FieldLayout, kind: str, target: str, length: str) -> None:
        source = self.source
        source.add(f"end = pos + {length}")
        with source.block("if end > size:"):
            self.fail(f"{layout.title}: {field.name} goes beyond the data")
        conversion = {"string": ".tobytes().decode()", "bytes": ".tobytes()", "records": ""}[kind]
        source.add(f"{target} = data[{'pos + 1' if layout.flexible else 'pos'}:end]{conversion}")
        source.add("pos = end")

    def array(self, layout: StructLayout, field: FieldLayout, target: str, length: str) -> None:
        source = self.source
        if layout.flexible:
            source.add(f"{length} -= 1")
            source.add("pos += 1")
        with source.block(f"if {length} * {field.min_element_size_bytes(layout.flexible)} > size - pos:"):
            self.fail(f"{layout.title}: {field.name} claims more elements than the data can hold")
        element = field.element or ""
        if element == "uuid":
            end = source.variable("e")
            source.add(f"{end} = pos + {length} * 16")
            source.add(f"{target} = [data[p:p + 16].tobytes() for p in range(pos, {end}, 16)]")
            source.add(f"pos = {end}")
        elif element in FIXED_FORMATS:
            code = FIXED_FORMATS[element]
            unpacks = source.constant(_unpacks_by_count(code), "unpacks")
            with source.block(f"if {length} < {SHORT_ARRAY}:"):
                source.add(f"{target} = list({unpacks}[{length}](data, pos))")
            with source.block("else:"):
                source.add(f"{target} = list(unpack_from(f'>{{{length}}}{code}', data, pos))")
            source.add(f"pos += {length} * {field.min_element_size_bytes(layout.flexible)}")
        else:
            self.spend(layout, length)
            elements, item = source.variable("a"), source.variable("x")
            source.add(f"{target} = {elements} = []")
            with source.block(f"while {length}:"):
                source.add(f"{length} -= 1")
                if field.layout is not None:
                    item = self.struct(field.layout)
                else:
                    self.sized(layout, field, element, item, nullable=False)
                source.add(f"{elements}.append({item})")

    def tagged_fields(self, layout: StructLayout, value: str) -> None:
        source = self.source
        count, unknown = source.variable("n"), source.variable("u")
        tag, length, end = source.variable("t"), source.variable("n"), source.variable("e")
        self.compact_length(count)
        with source.block(f"if {count}:"):
            source.add(f"{count}, pos = varint(data, pos)")
            self.spend(layout, count)
            source.add(f"{unknown} = []")
            with source.block(f"for _ in range({count}):"):
                source.add(f"{tag}, pos = varint(data, pos)")
                source.add(f"{length}, pos = varint(data, pos)")
                source.add(f"{end} = pos + {length}")
                with source.block(f"if {end} > size:"):
                    self.fail(f"{layout.title}: a tagged field goes beyond the data")
                for index, field in enumerate(layout.tagged):
                    with source.block(f"{'elif' if index else 'if'} {tag} == {field.tag}:"):
                        self.field(layout, field, f"{value}.{field.name}")
                        self.flush()
                        with source.block(f"if pos != {end}:"):
                            self.fail(f"{layout.title}: {field.name} is not as long as its tag says")
                with source.block("else:" if layout.tagged else "if True:"):
                    source.add(f"{unknown}.append(({tag}, data[pos:{end}].tobytes()))")
                    source.add(f"pos = {end}")
            source.add(f"{value}.unknown_tagged_fields = tuple({unknown})")
        with source.block("else:"):
            source.add("pos += 1")
            source.add(f"{value}.unknown_tagged_fields = ()")

    def spend(self, layout: StructLayout, count: str) -> None:
        self.source.add(f"budget -= {count}")
        with self.source.block("if budget < 0:"):
            self.fail(f"{layout.title}: more elements than one message may have")

    def flush(self, *, stay_on_last: bool = False) -> None:
        if not self.pending:
            return
        source = self.source
        layout = ">" + "".join(code for _, code in self.pending)
        targets = [target for target, _ in self.pending]
        self.pending.clear()
        packing = Struct(layout)
        unpack = source.constant(packing.unpack_from, "unpack")
        source.add(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {unpack}(data, pos)")
        source.add(f"pos += {packing.size - stay_on_last}")

    def fail(self, reason: str) -> None:
        self.source.add(f"raise DecodeError({reason!r})")


@cache
def _unpacks_by_count(code: str) -> tuple[Callable[..., tuple[Any, ...]], ...]:
    return tuple(Struct(f">{count}{code}").unpack_from for count in range(SHORT_ARRAY))
