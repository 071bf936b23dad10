"""`/latest_producer_id_block`: the last block of producer ids that a broker took. Each holds 1,000 ids."""

from __future__ import annotations

from typing import Final, NamedTuple

from kavka.cluster.znodes.json_data import Fields, ZnodeError, encode_json

PRODUCER_ID_BLOCK_PATH: Final = "/latest_producer_id_block"


class LatestProducerIdBlock(NamedTuple):
    """`first` and `last` are both included. Version 1."""

    broker_id: int
    first: int
    last: int

    def encode(self) -> bytes:
        return encode_json(
            {"version": 1, "broker": self.broker_id, "block_start": str(self.first), "block_end": str(self.last)}
        )

    @staticmethod
    def decode(data: bytes) -> LatestProducerIdBlock:
        fields = Fields.parse(PRODUCER_ID_BLOCK_PATH, data)
        block = LatestProducerIdBlock(
            fields.integer("broker", low=-1), fields.quoted_integer("block_start"), fields.quoted_integer("block_end")
        )
        if block.last < block.first:
            raise ZnodeError(PRODUCER_ID_BLOCK_PATH, "the block ends before it starts")
        return block
