"""What can be wrong with a partition's files, beside corrupt ones (`arrow.decoding.CorruptInputError`)."""


class PartitionFilesError(Exception):
    """A partition cannot be read from its files. The text is one line that says where, why and what to do."""


class PartitionMissingError(PartitionFilesError):
    """No directory here has the partition: on another machine, executors must see the same path."""


class OffsetsGoneError(PartitionFilesError):
    """Records of the range are not there any more: retention or a deletion took them."""

    def __init__(self, folder: str, offset: int, first_offset: int) -> None:
        super().__init__(folder, offset, first_offset)
        self.offset = offset
        self.first_offset = first_offset
        """The first that is left."""

    def __str__(self) -> str:
        folder, offset, first_offset = self.args
        return f"{folder} has no offset {offset} any more: it begins with {first_offset}"


class LogEndsError(PartitionFilesError):
    """The files end before the range does, or a transaction in it: an old copy, or a follower's that is behind."""


class TopicChangedError(PartitionFilesError):
    """The topic was deleted and made anew while it was read."""
