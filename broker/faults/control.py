"""Faults on demand, from Python.

    control = FaultControl()
    broker = Broker(config, faults=control)
    with control.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=3, topic="orders") as fault:
        ...
        print(fault.hits)

A request meets the oldest fault that hits it, and no other. Which requests: those of `api` (None: of any), by
`client_id`, `topic`, and with that `partition`; of `broker`, where several have this control. What brokers of a cluster
ask of each other is hit only where it is named, but for `freeze`, which holds everything up.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.faults.actions import Cut, Delay, Drop, Fail, Throttle
from kavka.broker.faults.fault import Fault
from kavka.broker.faults.hit import Action
from kavka.broker.faults.hooked_broker import HookedBroker
from kavka.broker.faults.leaderships import LostCoordinator, move_leader, other_leader, partition_of, without_leader
from kavka.broker.faults.standing import Reached, Rule, StandingFaults
from kavka.broker.faults.target import Target, api_key_of, error_of
from kavka.protocol.api import ApiKey

if TYPE_CHECKING:
    from kavka.broker.coordination.coordination import AnyCoordination
    from kavka.broker.faults.hooked_broker import Door
    from kavka.broker.services import Services
    from kavka.storage.files import Files

UNAVAILABLE_MS: Final = 1_000
LOADING_MS: Final = 500
MOST_MS: Final = 3_600_000
_BEFORE_FAULTS: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
MOST_MESSAGE_BYTES: Final = 32_767
"""As long as a string of any version may be."""


class FaultControl:
    """Each method asks for one fault and gives its handle. They raise ValueError for what cannot be meant.

    One control may be given to several brokers, and to a broker again after a restart: faults that stand hit those too.

    Threads: any.
    """

    def __init__(self, *, bounce: Callable[[int], object] | None = None) -> None:
        """`bounce(broker_id)` has that broker restart in place, and returns when it serves: by who owns it."""
        self._standing: Final = StandingFaults()
        self.on_bounce = bounce

    def hook(self, services: "Services", files: "Files", door: "Door | None" = None) -> HookedBroker:
        """For a broker that starts: what stands in the place of its plain parts. `door`: starts and stops with it."""
        return HookedBroker(self._standing, services, files, door)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Those that were not cleared, the oldest first; also those that hit no more, for their counts."""
        return self._standing.faults

    def clear(self) -> None:
        """Take all faults back."""
        self._standing.clear()

    def fail(
        self,
        api: str | int,
        *,
        error: str | int,
        times: int | None = 1,
        client_id: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        broker: int | None = None,
        message: str | None = None,
    ) -> Fault:
        """Answer the next requests with an error, and do nothing of what they ask.

        With `topic`, where the API's partitions fail one by one, the others of the request are served.
        """
        target = _target(api, client_id, topic, partition, broker)
        code = error_of(error)
        if message is not None and not _can_be_sent(message):
            raise ValueError(f"a message is text that has {MOST_MESSAGE_BYTES} bytes at most in UTF-8")
        return self._stand("fail", Fail(code, message), target, times, f"with {code.name}")

    def delay(
        self,
        api: str | int | None = None,
        *,
        delay_ms: float,
        times: int | None = 1,
        client_id: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        broker: int | None = None,
    ) -> Fault:
        """Run the next requests so much later; those behind them on their connections wait too."""
        target = _target(api, client_id, topic, partition, broker)
        return self._stand("delay", Delay(_duration(delay_ms)), target, times, f"by {delay_ms} ms")

    def drop(
        self,
        api: str | int | None = None,
        *,
        times: int | None = 1,
        client_id: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        broker: int | None = None,
    ) -> Fault:
        """Do what the next requests ask, and never answer.

        The connection stands still then, until its client leaves it, or the fault is cleared, which closes it.
        """
        target = _target(api, client_id, topic, partition, broker)
        return self._stand("drop", Drop(), target, times)

    def cut(
        self,
        api: str | int | None = None,
        *,
        after_work: bool = False,
        times: int | None = 1,
        client_id: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        broker: int | None = None,
    ) -> Fault:
        """Close the connections of the next requests, before they are run or when they have been."""
        target = _target(api, client_id, topic, partition, broker)
        return self._stand("cut", Cut(after_work=after_work), target, times, "after the work" * after_work)

    def throttle(
        self,
        api: str | int | None = None,
        *,
        throttle_time_ms: int,
        times: int | None = 1,
        client_id: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        broker: int | None = None,
    ) -> Fault:
        """Answer the next requests as if a quota were exceeded, and run no other of their connections for the time."""
        target = _target(api, client_id, topic, partition, broker)
        action = Throttle(int(_duration(throttle_time_ms)))
        return self._stand("throttle", action, target, times, f"for {throttle_time_ms} ms")

    def move_leader(
        self,
        topic: str,
        partition: int = 0,
        *,
        to: int | None = None,
        unavailable_ms: float = UNAVAILABLE_MS,
    ) -> Fault:
        """Have another replica lead a partition: `to`, or any that is in sync. Clearing moves nothing back.

        Waits until it leads. Also TimeoutError.

        Where there is no other one, nobody leads for `unavailable_ms`, as far as clients are told.
        """
        broker = self._knowing(topic, partition)
        other = other_leader(broker, topic, partition, to)
        words = f"of {topic}-{partition}"
        if other is not None:
            fault = self._standing.new("move_leader", words=f"{words} to broker {other}")
            # The wait ends with the broker, or by who takes the fault back.
            self._standing.tie(fault, broker.broker_id)
            try:
                move_leader(self._standing, broker, topic, partition, other, fault)
            except BaseException:
                fault.clear()
                raise
            fault.note_hit()
            return fault
        _duration(unavailable_ms)
        fault = self._standing.new("move_leader", words=f"{words} away for {unavailable_ms} ms")
        without_leader(self._standing, broker, topic, partition, fault)
        self._standing.tie(fault, broker.broker_id)
        broker.services.purgatory.timer.schedule(fault.clear, unavailable_ms)
        return fault

    def lose_coordinator(
        self,
        group_id: str | None = None,
        *,
        transactional_id: str | None = None,
        unavailable_ms: float = UNAVAILABLE_MS,
        loading_ms: float = LOADING_MS,
    ) -> Fault:
        """Have another broker coordinate the group, or the transactional id; as `move_leader`.

        Where there is no other one, nobody does for `unavailable_ms`; then its log is loaded again, for `loading_ms` as
        far as clients are told.
        """
        if (group_id is None) == (transactional_id is None):
            raise ValueError("either group_id or transactional_id says whose coordinator it is")
        _duration(unavailable_ms)
        _duration(loading_ms)
        broker, coordination, partition = self._coordinating(group_id, transactional_id)
        topic = coordination.topic.name
        if other_leader(broker, topic, partition, None) is not None:
            return self.move_leader(topic, partition)
        words = f"of {'group' if group_id is not None else 'transactional id'} {group_id or transactional_id}"
        fault = self._standing.new("lose_coordinator", words=words)
        self._standing.tie(fault, broker.broker_id)
        LostCoordinator(broker, coordination, partition, fault).begin(self._standing, unavailable_ms, loading_ms)
        return fault

    def freeze(self, *, duration_ms: float | None = None, broker: int | None = None) -> Fault:
        """Stand still: connections are accepted, requests taken, and nobody is answered, until it is cleared.

        Also what other brokers ask, and what waited before. Its session with the registry stays.
        """
        first = self._first(broker)
        if duration_ms is not None:
            _duration(duration_ms)
        fault = self._standing.new("freeze", words="" if duration_ms is None else f"for {duration_ms} ms")
        self._standing.freeze(fault, broker)
        if duration_ms is not None:
            first.services.purgatory.timer.schedule(fault.clear, duration_ms)
        return fault

    def fill_disk(self, *, broker: int | None = None) -> Fault:
        """Have every write that takes room refused (ENOSPC), until it is cleared. Hits are the writes refused."""
        reached = self._brokers(broker)
        fault = self._standing.new("fill_disk")
        for each in reached:
            self._standing.tie(fault, each.broker_id)
            each.files.fill(fault)
        return fault

    def bounce(self, *, broker: int | None = None) -> Fault:
        """Have a broker restart in place: same port, same data. Waits until it serves again. Clearing does nothing.

        RuntimeError where nobody owns it who could.
        """
        reached = self._first(broker)
        if self.on_bounce is None:
            raise RuntimeError("this broker's owner does not restart it")
        fault = self._standing.new("bounce", words=f"of broker {reached.broker_id}")
        try:
            self.on_bounce(reached.broker_id)
        except BaseException:
            fault.clear()
            raise
        fault.note_hit()
        return fault

    def _stand(self, kind: str, action: Action, target: Target, times: int | None, words: str = "") -> Fault:
        fault = self._standing.new(kind, times=times, words=" ".join(each for each in (_about(target), words) if each))
        self._standing.add_rules(Rule(fault, target, action))
        return fault

    def _brokers(self, broker: int | None) -> list[Reached]:
        found = [each for each in self._standing.brokers if broker in (None, each.broker_id)]
        if not found:
            raise ValueError("no broker serves" if broker is None else f"there is no broker {broker} that serves")
        return found

    def _first(self, broker: int | None) -> Reached:
        return self._brokers(broker)[0]

    def _knowing(self, topic: str, partition: int) -> Reached:
        """The partition's leader, if faults reach it, else any broker that knows it."""
        brokers = self._brokers(None)
        leader = partition_of(brokers[0], topic, partition).leader
        return next((each for each in brokers if each.broker_id == leader), brokers[0])

    def _coordinating(
        self, group_id: str | None, transactional_id: str | None
    ) -> "tuple[Reached, AnyCoordination, int]":
        any_broker = self._first(None)
        key = group_id if group_id is not None else transactional_id or ""
        coordination = _coordination(any_broker, of_groups=group_id is not None)
        partition = coordination.partition_of(key)
        broker = self._knowing(coordination.topic.name, partition)
        return broker, _coordination(broker, of_groups=group_id is not None), partition


def _coordination(broker: Reached, *, of_groups: bool) -> "AnyCoordination":
    return broker.services.groups if of_groups else broker.services.transactions


def _target(
    api: str | int | None, client_id: str | None, topic: str | None, partition: int | None, broker: int | None
) -> Target:
    if partition is not None and topic is None:
        raise ValueError("a partition is one of a topic: name that too")
    api_key = api_key_of(api)
    if api_key in _BEFORE_FAULTS:
        raise ValueError(f"{ApiKey(api_key).title} is answered before any fault is met: a client is not known by then")
    return Target(api_key, client_id, topic, partition, broker)


def _duration(value_ms: float) -> float:
    if not 0 <= value_ms <= MOST_MS:
        raise ValueError(f"a time is between 0 and {MOST_MS} ms, not {value_ms}")
    return value_ms


def _can_be_sent(text: str) -> bool:
    try:
        return len(text.encode()) <= MOST_MESSAGE_BYTES
    except UnicodeEncodeError:
        # Half a surrogate pair, as JSON may have.
        return False


def _about(target: Target) -> str:
    words = [] if target.api_key is None else [ApiKey(target.api_key).title]
    words += [] if target.client_id is None else [f"of client {target.client_id}"]
    if target.topic is not None:
        words.append(f"for {target.topic}" + ("" if target.partition is None else f"-{target.partition}"))
    words += [] if target.broker_id is None else [f"on broker {target.broker_id}"]
    return " ".join(words)
