"""What may go wrong between bytes and columns, by what has to happen then."""


class SchemaUnavailableError(Exception):
    """A registry could not be reached, or had no usable answer. Trying again may help: batches wait for it."""


class SchemaMissingError(SchemaUnavailableError):
    """The registry answered that it has no such id or subject. It may still come: replicas of registries lag."""


class SchemaUnusableError(Exception):
    """A schema that no table can be made of: it does not parse, is recursive, or does not fit the reader's.

    Values written with it are bad; where it is the reader's own, the job cannot start.
    """


class SchemaChangedError(Exception):
    """A batch holds what the reader's schema has no column for, and `on_change` is `fail`. The job has to stop."""


class UnfitValueError(ValueError):
    """One value does not fit its schema: its row is bad. The text is the reason that goes to the dead letters."""
