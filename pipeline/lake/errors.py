"""What can be wrong with a lake, each in one line that says where and what to do."""


class LakeError(Exception):
    """Something about a lake that somebody has to see to."""


class ManifestError(LakeError):
    """A file of the manifest, or one that it names, is not what it must be; the message begins with its path."""


class LakeLockedError(LakeError):
    """Somebody else writes this lake; the message says who."""
