"""Numbers of things in sentences."""


def counted(count: int, noun: str, others: str = "") -> str:
    """`1 partition`, `2 partitions`; `others` is the plural where an s does not make it."""
    return f"{count} {noun if count == 1 else others or f'{noun}s'}"
