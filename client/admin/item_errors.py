"""What a call on many items raises when some of them failed."""

from collections.abc import Mapping
from typing import Any, Final

from kavka.client.kafka_error import KafkaError

SHOWN: Final = 3


class ItemErrors(KafkaError):  # noqa: N818  # several errors, not one
    """Some of the items failed: `errors` has why, by item; `results` what came of the others.

        try:
            admin.create_topics([NewTopic("a"), NewTopic("b")])
        except ItemErrors as failed:
            for name, error in failed.errors.items():
                print(name, error)

    A call on one item raises that item's own error instead. `code` is the first error's.
    """

    def __init__(self, what: str, errors: Mapping[Any, KafkaError], results: Mapping[Any, Any]) -> None:
        self.errors: Final = errors
        self.results: Final = results
        shown = "; ".join(f"{item}: {error}" for item, error in list(errors.items())[:SHOWN])
        more = f"; and {len(errors) - SHOWN} more" if len(errors) > SHOWN else ""
        super().__init__(f"{what}: {len(errors)} of {len(errors) + len(results)} failed: {shown}{more}")
        self.code = next(iter(errors.values())).code
