"""`/cluster/id`: the name of the cluster, written once by its first broker."""

from typing import Final

from kavka.cluster.znodes.json_data import Fields, encode_json


class ClusterId:
    PATH: Final = "/cluster/id"

    @staticmethod
    def encode(cluster_id: str) -> bytes:
        return encode_json({"version": "1", "id": cluster_id})

    @staticmethod
    def decode(data: bytes) -> str:
        return Fields.parse(ClusterId.PATH, data).text("id")
