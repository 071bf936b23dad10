"""What a fetched answer does to a follower's log: append, cut, begin anew; and what is logged of it.

Each step names the leader epoch that it was fetched in; the log refuses it under its lock when that is over.
"""

import logging
from enum import Enum
from typing import Final

from kavka.broker.replication.fetch_state import Reset, truncation_offset
from kavka.broker.replication.followed_partitions import Followed, position_of
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.fetch import PartitionData

log: Final = logging.getLogger(__name__)


class Outcome(Enum):
    """What became of a step."""

    MOVED = 1
    """The log is another one now, or its end stands where the leader's does."""
    NOTHING = 2
    """The step was possible, and has changed nothing where something was to change: ask again after the back-off."""
    RETRY = 3
    """The step was refused, and may not be the next time."""
    FAILED = 4
    """No further step is possible under this leader epoch."""


def append(followed: Followed, fetch_offset: int, answer: PartitionData) -> Outcome:
    """Append what came, then take over the leader's high watermark and log start."""
    own, leader_epoch = followed.log, followed.state.leader_epoch
    if own.log_end_offset != fetch_offset:
        # Nothing is lost by asking again, from where the log ends.
        log.warning("its end moved under a fetch log=%s end=%d fetched=%d", own, own.log_end_offset, fetch_offset)
        return Outcome.RETRY
    records = answer.records
    try:
        if records:
            own.append_as_follower(records, leader_epoch)
        own.follow(answer.high_watermark, answer.log_start_offset, leader_epoch)
    except BrokerError as failure:
        return _refused(followed, "append", failure)
    return Outcome.NOTHING if records and own.log_end_offset == fetch_offset else Outcome.MOVED


def cut_to_high_watermark(followed: Followed) -> Outcome:
    """For a log without epochs: what is above may not be the leader's."""
    return _cut(followed, followed.log.high_watermark, "its epochs are not known")


def cut_to_common_history(followed: Followed, answer: PartitionData) -> Outcome:
    """The leader's log has another history from somewhere on."""
    own, ends = followed.log, answer.diverging_epoch
    before = position_of(own)
    offset = truncation_offset(ends.epoch, ends.end_offset, before, own.end_offset_for_epoch)
    outcome = _cut(followed, offset, f"the leader's epoch {ends.epoch} ends at {ends.end_offset}")
    if outcome is Outcome.MOVED and position_of(own) == before:
        return Outcome.NOTHING
    return outcome


def reset(followed: Followed, what: Reset) -> Outcome:
    """Come back into the leader's range."""
    own, leader_epoch = followed.log, followed.state.leader_epoch
    if what.cut_to is not None:
        return _cut(followed, what.cut_to, f"the leader's log ends at {what.cut_to}")
    if what.begin_at is not None:
        log.warning(
            "begins anew where the leader's log begins log=%s start=%d former_end=%d",
            own,
            what.begin_at,
            own.log_end_offset,
        )
        try:
            own.truncate_fully_and_start_at(what.begin_at, leader_epoch)
        except BrokerError as failure:
            return _refused(followed, "truncation", failure)
        return Outcome.MOVED
    return Outcome.NOTHING


def _cut(followed: Followed, offset: int, reason: str) -> Outcome:
    own = followed.log
    end_offset, high_watermark = own.log_end_offset, own.high_watermark
    try:
        own.truncate_to(offset, followed.state.leader_epoch)
    except BrokerError as failure:
        return _refused(followed, "truncation", failure)
    if own.log_end_offset < end_offset:
        level = logging.WARNING if own.log_end_offset < high_watermark else logging.INFO
        log.log(
            level,
            "cut log=%s from=%d to=%d high_watermark=%d reason=%r",
            own,
            end_offset,
            own.log_end_offset,
            high_watermark,
            reason,
        )
    return Outcome.MOVED


def _refused(followed: Followed, step: str, failure: BrokerError) -> Outcome:
    """What the log's refusal means."""
    code = failure.code
    if code in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        # The controller's next order is here already, and whoever asked takes this partition away.
        return Outcome.RETRY
    if code == ErrorCode.KAFKA_STORAGE_ERROR and not followed.log.closed:
        log.warning("the disk refused log=%s step=%s error=%r", followed.log, step, str(failure))
        return Outcome.RETRY
    if code == ErrorCode.CORRUPT_MESSAGE:
        log.error("a bad batch was fetched log=%s error=%r", followed.log, str(failure))
        return Outcome.RETRY
    log.error("cannot follow log=%s step=%s error=%r", followed.log, step, str(failure))
    return Outcome.FAILED
