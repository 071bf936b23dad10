"""`/cluster/id`: the name of the cluster, written once by its first broker."""

from typing import Final

from kavka.cluster.znodes.json_data import Fields, ZnodeError, encode_json

MAX_LENGTH: Final = 255
_NOT_LATIN: Final = "\u0100"


class ClusterId:
    PATH: Final = "/cluster/id"

    @staticmethod
    def encode(cluster_id: str) -> bytes:
        return encode_json({"version": "1", "id": cluster_id})

    @staticmethod
    def decode(data: bytes) -> str:
        """Raises ZnodeError, also for what the brokers' meta.properties cannot hold: they would not start again."""
        text = Fields.parse(ClusterId.PATH, data).text("id")
        is_plain = text.isprintable() and text == text.strip() and all(each < _NOT_LATIN for each in text)
        if not 0 < len(text) <= MAX_LENGTH or not is_plain:
            raise ZnodeError(ClusterId.PATH, f"{text[:40]!r} is no cluster's id")
        return text
