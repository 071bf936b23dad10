"""`/controller` and `/controller_epoch`: who is the controller, and the count of all that were."""

from __future__ import annotations

from typing import Final, NamedTuple

from kavka.cluster.znodes.json_data import INT32_MAX, Fields, ZnodeError, encode_json

CONTROLLER_PATH: Final = "/controller"
CONTROLLER_EPOCH_PATH: Final = "/controller_epoch"


class ControllerLease(NamedTuple):
    """`/controller`, ephemeral. Version 1 (without the KRaft epoch) is read too.

    A quorum that takes a cluster over (KIP-866) has an epoch there, and its node has no session.
    """

    broker_id: int
    timestamp_ms: int
    kraft_epoch: int = -1

    def encode(self) -> bytes:
        return encode_json(
            {
                "version": 2,
                "brokerid": self.broker_id,
                "timestamp": str(self.timestamp_ms),
                "kraftControllerEpoch": self.kraft_epoch,
            }
        )

    @staticmethod
    def decode(data: bytes) -> ControllerLease:
        fields = Fields.parse(CONTROLLER_PATH, data)
        return ControllerLease(
            fields.integer("brokerid"),
            fields.quoted_integer("timestamp", low=-1),
            fields.integer("kraftControllerEpoch", low=-1, default=-1),
        )


class ControllerEpoch:
    """`/controller_epoch`: a bare number. Its version fences the writes of a controller that was deposed."""

    @staticmethod
    def encode(epoch: int) -> bytes:
        return b"%d" % epoch

    @staticmethod
    def decode(data: bytes) -> int:
        if not (data.isdigit() and len(data) <= 10 and int(data) < INT32_MAX):
            raise ZnodeError(CONTROLLER_EPOCH_PATH, f"no epoch: {data[:40]!r}")
        return int(data)
