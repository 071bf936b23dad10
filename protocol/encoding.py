"""Compiles the encoder of one (class, version): a single flat function that collects pieces and joins them once.

Neighbouring fixed-size values, the one-byte length behind them and an empty tagged section are written by one `struct`
call.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct, error, pack
from typing import Any

from kavka.protocol.errors import EncodeError
from kavka.protocol.interpreter import check_absent, tagged_fields_bytes
from kavka.protocol.layout import FIXED_FORMATS, MAX_STRING_BYTES, FieldLayout, StructLayout
from kavka.protocol.schema import Field
from kavka.protocol.source_writer import SourceWriter
from kavka.protocol.varint import varint_bytes

INLINE_RECORDS_BYTES = 4096
"""Records up to this size are copied among the other bytes by `encode_parts`: a part of their own costs more."""


def compile_encoder(layout: StructLayout, *, parts: bool) -> Any:
    """`encode(message) -> bytes`, or with `parts` a list of bytes and records; see `codec`."""
    return _EncoderCompiler(layout, parts).compile()


SHORT_ARRAY = 9
"""Arrays of fewer numbers than this, such as most replica lists, have a `struct` of their own for each length."""


class _EncoderCompiler:
    """`pending` holds the fixed-size values (expression, format) that the next `struct` call will write together; a
    format of "x" is a zero byte without a value."""

    def __init__(self, layout: StructLayout, parts: bool) -> None:
        self.layout = layout
        self.parts = parts
        self.pending: list[tuple[str, str]] = []
        self.source = SourceWriter(
            varint=varint_bytes,
            string_varint=_string_varint,
            tagged_fields=tagged_fields_bytes,
            refuse=_refuse,
            pack=pack,
            EncodeError=EncodeError,
            Unwritable=(error, TypeError, AttributeError, UnicodeEncodeError, OverflowError),
            in_memory=(bytes, bytearray, memoryview),
        )

    def compile(self) -> Any:
        source, title = self.source, self.layout.title
        with source.block("def encode(o):"):
            source.add("out = []")
            if self.parts:
                source.add("parts = []")
            with source.block("try:"):
                self.struct(self.layout, "o")
                if self.parts:
                    with source.block("if out:"):
                        source.add("parts.append(b''.join(out))")
                    source.add("return parts")
                else:
                    source.add("return b''.join(out)")
            with source.block("except Unwritable as problem:"):
                source.add(f"raise EncodeError(f'{title}: {{problem}}') from problem")
        return source.function("encode", f"encoder of {title}")

    def struct(self, layout: StructLayout, value: str) -> None:
        self.refusals(layout, value)
        for field in layout.regular:
            self.field(layout, field, f"{value}.{field.name}")
        if layout.flexible:
            self.tagged_fields(layout, value)
        else:
            self.flush()

    def refusals(self, layout: StructLayout, value: str) -> None:
        """One test for everything that the version can't say and that mustn't be dropped in silence."""
        conditions = [self.differs(field, f"{value}.{field.name}") for field in layout.absent if not field.ignorable]
        if not layout.flexible:
            conditions.append(f"{value}.unknown_tagged_fields")
        present = (*layout.regular, *layout.tagged)
        conditions += [f"len({value}.{field.name}) != 16" for field in present if field.kind == "uuid"]
        if conditions:
            with self.source.block(f"if {' or '.join(conditions)}:"):
                self.source.add(f"refuse({self.source.constant(layout, 'layout')}, {value})")

    def differs(self, field: Field, expression: str) -> str:
        """An expression that is true if a value is not the field's default."""
        if field.kind == "struct" and field.default is not None:
            default = self.source.constant(field.default, "default")
            return f"({expression} is not {default} and {expression} != {default})"
        if field.default is None and field.fresh_default() is None:
            return f"{expression} is not None"
        if field.kind == "array":
            return f"({expression} or {expression} is None)"
        if field.kind == "struct":
            return f"{expression} != {self.source.constant(field.struct, 'c')}()"
        return f"{expression} != {self.source.constant(field.default, 'default')}"

    def field(self, layout: StructLayout, field: FieldLayout, value: str) -> None:
        if field.kind in FIXED_FORMATS:
            self.pending.append((value, FIXED_FORMATS[field.kind]))
        elif field.kind == "struct" and field.layout is not None:
            self.nested_struct(field, field.layout, value)
        else:
            content = self.source.variable("v")
            self.source.add(f"{content} = {value}")
            self.sized(layout, field, field.kind, content, field.nullable)

    def nested_struct(self, field: FieldLayout, layout: StructLayout, value: str) -> None:
        source = self.source
        nested = source.variable("o")
        source.add(f"{nested} = {value}")
        if not field.nullable:
            self.flush()
            self.struct(layout, nested)
            return
        self.flush()
        with source.block(f"if {nested} is None:"):
            source.add("out.append(b'\\xff')")
        with source.block("else:"):
            source.add("out.append(b'\\x01')")
            self.struct(layout, nested)

    def sized(self, layout: StructLayout, field: FieldLayout, kind: str, value: str, nullable: bool) -> None:
        """A string, bytes, records or array: the length, or null's, and then the content."""
        source = self.source
        length = source.variable("n")
        null, empty = 0 if layout.flexible else -1, "()" if kind == "array" else "b''"
        plus = " + 1" if layout.flexible else ""
        if nullable:
            with source.block(f"if {value} is None:"):
                source.add(f"{length} = {null}")
                source.add(f"{value} = {empty}")
            with source.block("else:"):
                self.measure(kind, value, length, plus)
        else:
            self.measure(kind, value, length, plus)
        if kind == "array" and field.element in FIXED_FORMATS and field.element != "uuid":
            self.numbers(layout, field, value, length)
            return
        self.length(layout, kind, length)
        if kind == "array":
            self.elements(layout, field, value)
        elif kind == "records" and self.parts:
            self.records(value)
        else:
            source.add(f"out.append({value})")

    def measure(self, kind: str, value: str, length: str, plus: str) -> None:
        source = self.source
        if kind == "string":
            source.add(f"{value} = {value}.encode()")
        if kind == "records" and self.parts:
            source.add(f"{length} = (len({value}) if isinstance({value}, in_memory) else {value}.size_bytes){plus}")
        else:
            source.add(f"{length} = len({value}){plus}")

    def length(self, layout: StructLayout, kind: str, length: str) -> None:
        source = self.source
        if not layout.flexible:
            self.pending.append((length, "h" if kind == "string" else "i"))
            self.flush()
            return
        varint = "string_varint" if kind == "string" else "varint"
        before = list(self.pending)
        with source.block(f"if {length} < 128:"):
            self.pending.append((length, "B"))
            self.flush()
        with source.block("else:"):
            self.pending = before
            self.flush()
            source.add(f"out.append({varint}({length}))")

    def numbers(self, layout: StructLayout, field: FieldLayout, value: str, length: str) -> None:
        """An array of numbers. A short one goes into the same `struct` call as its length and what stands before it."""
        source = self.source
        code = FIXED_FORMATS[field.element or ""]
        before = list(self.pending)
        head = "".join(each for _, each in before) + ("B" if layout.flexible else "i")
        packs = source.constant(_packs_by_count(head, code), "packs")
        values = [expression for expression, _ in before]
        with source.block(f"if len({value}) < {SHORT_ARRAY}:"):
            source.add(f"out.append({packs}[len({value})]({', '.join((*values, length))}, *{value}))")
            self.pending.clear()
        with source.block("else:"):
            self.pending = before
            self.length(layout, "array", length)
            source.add(f"out.append(pack(f'>{{len({value})}}{code}', *{value}))")

    def elements(self, layout: StructLayout, field: FieldLayout, value: str) -> None:
        source = self.source
        element = field.element or ""
        if field.layout is not None:
            item = source.variable("o")
            with source.block(f"for {item} in {value}:"):
                self.struct(field.layout, item)
        elif element == "uuid":
            with source.block(f"if {value} and set(map(len, {value})) != {{16}}:"):
                source.add(f"raise EncodeError({f'{layout.title}: a UUID of {field.name} has not 16 bytes'!r})")
            source.add(f"out += {value}")
        else:
            item = source.variable("v")
            with source.block(f"for {item} in {value}:"):
                self.sized(layout, field, element, item, nullable=False)

    def records(self, value: str) -> None:
        source = self.source
        with source.block(f"if isinstance({value}, in_memory) and len({value}) <= {INLINE_RECORDS_BYTES}:"):
            source.add(f"out.append({value})")
        with source.block("else:"):
            source.add("parts.append(b''.join(out))")
            source.add(f"parts.append({value})")
            source.add("out = []")

    def tagged_fields(self, layout: StructLayout, value: str) -> None:
        source = self.source
        tests = [self.differs(field.field, f"{value}.{field.name}") for field in layout.tagged]
        before = list(self.pending)
        with source.block(f"if {' or '.join([*tests, f'{value}.unknown_tagged_fields'])}:"):
            self.flush()
            tagged = source.variable("t")
            source.add(f"{tagged} = []")
            for test, field in zip(tests, layout.tagged, strict=True):
                with source.block(f"if {test}:"):
                    outer = source.variable("w")
                    source.add(f"{outer} = out")
                    source.add("out = []")
                    self.field(layout, field, f"{value}.{field.name}")
                    self.flush()
                    source.add(f"{tagged}.append(({field.tag}, b''.join(out)))")
                    source.add(f"out = {outer}")
            source.add(f"out.append(tagged_fields({tagged}, {value}.unknown_tagged_fields))")
        with source.block("else:"):
            self.pending = [*before, ("", "x")]
            self.flush()

    def flush(self) -> None:
        if not self.pending:
            return
        source = self.source
        layout = ">" + "".join(code for _, code in self.pending)
        values = [value for value, code in self.pending if code != "x"]
        self.pending.clear()
        if not values:
            source.add(f"out.append({bytes(len(layout) - 1)!r})")
        else:
            source.add(f"out.append({source.constant(Struct(layout).pack, 'pack')}({', '.join(values)}))")


@cache
def _packs_by_count(head: str, code: str) -> tuple[Callable[..., bytes], ...]:
    return tuple(Struct(f">{head}{count}{code}").pack for count in range(SHORT_ARRAY))


def _string_varint(length: int) -> bytes:
    if length > MAX_STRING_BYTES + 1:
        raise EncodeError(f"a string of {length - 1} bytes is too long")
    return varint_bytes(length)


def _refuse(layout: StructLayout, value: Any) -> None:
    check_absent(layout, value)
    raise EncodeError(f"{layout.title}: a UUID has 16 bytes")
