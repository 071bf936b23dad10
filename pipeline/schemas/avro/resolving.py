"""Which of a reader's types takes what a writer wrote: Avro's schema resolution, as far as schemas alone tell."""

from typing import Final

from kavka.pipeline.schemas.avro.tree import NO_DEFAULT, Field, Node

_PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def misfit(writer: Node, reader: Node) -> str | None:
    """Why no value of the writer's type can be read as the reader's; None if all can, or if it goes by the value."""
    if reader.kind == "union" and writer.kind != "union":
        return None if branch_for(writer, reader) is not None else _cannot(writer, reader)
    if writer.kind == "union":
        reasons = [misfit(branch, reader) for branch in writer.branches]
        return reasons[0] if reasons and all(reasons) else None
    if writer.kind != reader.kind:
        return None if reader.kind in _PROMOTIONS.get(writer.kind, ()) else _cannot(writer, reader)
    if not _same_logical(writer, reader):
        return _cannot(writer, reader)
    if writer.kind in ("record", "enum", "fixed") and not _same_name(writer, reader):
        return f"{reader.path or 'the value'}: {writer.name} is not {reader.name}"
    if writer.kind == "fixed" and writer.size_bytes != reader.size_bytes:
        return _cannot(writer, reader)
    if writer.kind == "record":
        return _record_misfit(writer, reader)
    return None


def _record_misfit(writer: Node, reader: Node) -> str | None:
    for field in reader.fields:
        written = written_field(field, writer)
        if written is None:
            if field.default is NO_DEFAULT:
                return f"{field.node.path}: it was not written, and has no default"
        elif reason := misfit(written.node, field.node):
            return reason
    return None


def branch_for(writer: Node, reader: Node) -> Node | None:
    """The branch of a reader's union for a writer's type: one of the same type, or the first that takes it."""
    exact = [branch for branch in reader.branches if branch.kind == writer.kind and not misfit(writer, branch)]
    for branch in exact:
        if branch.name == writer.name:
            return branch
    if exact:
        return exact[0]
    return next((branch for branch in reader.branches if not misfit(writer, branch)), None)


def written_field(field: Field, writer: Node) -> Field | None:
    """The writer's field that a reader's field is filled from, by its name or else by an alias."""
    for written in writer.fields:
        if written.name == field.name:
            return written
    return next((written for written in writer.fields if written.name in field.aliases), None)


def unseen_fields(writer: Node, reader: Node) -> list[str]:
    """What is written and has no place in the reader's schema, by path: fields, and branches of unions."""
    if writer.kind == "union":
        return [path for branch in writer.branches for path in unseen_fields(branch, reader)]
    if reader.kind == "union":
        branch = branch_for(writer, reader)
        return [writer.path or writer.kind] if branch is None else unseen_fields(writer, branch)
    if writer.kind != reader.kind:
        return []
    if writer.kind in ("array", "map"):
        return unseen_fields(writer.item, reader.item)
    if writer.kind != "record":
        return []
    taken = {written.name: field for field in reader.fields if (written := written_field(field, writer)) is not None}
    unseen = [field.node.path for field in writer.fields if field.name not in taken]
    for written in writer.fields:
        if written.name in taken:
            unseen += unseen_fields(written.node, taken[written.name].node)
    return unseen


def _same_name(writer: Node, reader: Node) -> bool:
    """By the name without its namespace, as the specification allows; or by one of the reader's aliases."""
    return writer.name.rpartition(".")[2] == reader.name.rpartition(".")[2] or writer.name in reader.aliases


def _same_logical(writer: Node, reader: Node) -> bool:
    if not writer.logical or not reader.logical:
        return True
    return (writer.logical, writer.scale) == (reader.logical, reader.scale) and writer.precision <= reader.precision


def _cannot(writer: Node, reader: Node) -> str:
    names = [" ".join(filter(None, (node.kind, node.logical))) for node in (writer, reader)]
    return f"{reader.path or 'the value'}: what was written as {names[0]} cannot be read as {names[1]}"
