"""Members of classic groups who are late: to join, to sync, or both."""

from typing import Any

from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from tests.integration.oracle.answers.groups import NEWEST_HEARTBEAT, NEWEST_JOIN, NEWEST_SYNC, Troupe
from tests.integration.oracle.answers.stage import Stage, scenario
from tests.support.processes import wait_until
from tests.support.wire import Wire

REBALANCE_TIMEOUT_MS = 1_500


class Pair(Troupe):
    """A group of two, each with a connection of its own; the leader is the stage's client."""

    def __init__(self, stage: Stage, client: Wire, instance: str | None = None) -> None:
        super().__init__(stage)
        self.leader, generation = self.stable_member("leader", rebalance_timeout_ms=REBALANCE_TIMEOUT_MS)
        self.instance = instance
        self.follower, self.generation = self.add(client, self.leader, generation, "follower", instance)

    def begin_join(self, client: Wire, name: str, instance: str | None = None) -> int:
        """A new member's JoinGroup waits now; the key to receive its answer with.

        From here on those who are there have REBALANCE_TIMEOUT_MS to join.
        """
        given: dict[str, Any] = {"rebalance_timeout_ms": REBALANCE_TIMEOUT_MS, "group_instance_id": instance}
        key = client.send(self.join(**given), NEWEST_JOIN)
        if instance is None:
            member_id = client.receive(key, NEWEST_JOIN).member_id
            self.names[member_id] = name
            key = client.send(self.join(member_id, **given), NEWEST_JOIN)
        return key

    def rejoin(self, member_id: str, client: Wire, instance: str | None = None) -> int:
        given: dict[str, Any] = {"rebalance_timeout_ms": REBALANCE_TIMEOUT_MS, "group_instance_id": instance}
        return client.send(self.join(member_id, **given), NEWEST_JOIN)

    def await_rebalance(self, member_id: str, generation: int) -> None:
        """Until the member is told to join again, or, where that took too long, is none any more: that is noted."""
        beats = self.heartbeat(member_id, generation)
        client = self.stage.client
        told = wait_until(lambda: client.ask(beats, NEWEST_HEARTBEAT).error_code, 60, "no rebalance begins")
        self.note("leader beats", ErrorCode(told).name)

    def add(self, client: Wire, leader: str, generation: int, name: str, instance: str | None) -> tuple[str, int]:
        key = self.begin_join(client, name, instance)
        self.await_rebalance(leader, generation)
        led_key = self.rejoin(leader, self.stage.client)
        led = self.stage.client.receive(led_key, NEWEST_JOIN)
        followed = client.receive(key, NEWEST_JOIN)
        self.names[followed.member_id] = name
        self.note("leader joins again", led)
        self.note(f"{name} joins", followed)
        return followed.member_id, followed.generation_id

    def sync_both(self, client: Wire) -> None:
        follows = self.sync(self.follower, self.generation, group_instance_id=self.instance)
        key = client.send(follows, NEWEST_SYNC)
        self.ask("leader syncs", self.sync(self.leader, self.generation, self.leader, self.follower), NEWEST_SYNC)
        self.note("follower syncs", client.receive(key, NEWEST_SYNC))


@scenario(ApiKey.JOIN_GROUP, "9-9")
def members_late_to_join_are_left_out(stage: Stage) -> None:
    troupe = Troupe(stage)
    with troupe.another_client() as client, troupe.another_client() as third:
        pair = Pair(stage, client)
        pair.sync_both(client)
        key = pair.begin_join(third, "third")
        pair.await_rebalance(pair.leader, pair.generation)
        pair.note("leader", stage.client.receive(pair.rejoin(pair.leader, stage.client), NEWEST_JOIN))
        pair.note("third", third.receive(key, NEWEST_JOIN))
        pair.ask("late", pair.heartbeat(pair.follower, pair.generation), NEWEST_HEARTBEAT)


@scenario(ApiKey.JOIN_GROUP, "9-9")
def a_leader_late_to_join_leads_no_more(stage: Stage) -> None:
    troupe = Troupe(stage)
    with troupe.another_client() as client, troupe.another_client() as third:
        pair = Pair(stage, client)
        pair.sync_both(client)
        key = pair.begin_join(third, "third")
        pair.await_rebalance(pair.leader, pair.generation)
        answers = [
            client.receive(pair.rejoin(pair.follower, client), NEWEST_JOIN),
            third.receive(key, NEWEST_JOIN),
        ]
        # Which of the two leads now is left to Kafka's hash table.
        answers.sort(key=lambda answer: answer.member_id != answer.leader)
        for name, answer in zip(("new leader", "other"), answers, strict=True):
            pair.names[answer.member_id] = name
        for name, answer in zip(("new leader", "other"), answers, strict=True):
            pair.note(name, answer)
        pair.ask("late", pair.heartbeat(pair.leader, pair.generation), NEWEST_HEARTBEAT)


@scenario(ApiKey.JOIN_GROUP, "9-9")
def static_members_late_to_join_stay(stage: Stage) -> None:
    troupe = Troupe(stage)
    with troupe.another_client() as client, troupe.another_client() as third:
        pair = Pair(stage, client, "b")
        pair.sync_both(client)
        key = pair.begin_join(third, "third")
        pair.await_rebalance(pair.leader, pair.generation)
        led = stage.client.receive(pair.rejoin(pair.leader, stage.client), NEWEST_JOIN)
        pair.note("leader", led)
        pair.note("third", third.receive(key, NEWEST_JOIN))
        beats = pair.heartbeat(pair.follower, pair.generation, group_instance_id="b")
        pair.ask("late", beats, NEWEST_HEARTBEAT)
        beats = pair.heartbeat(pair.follower, led.generation_id, group_instance_id="b")
        pair.ask("late, in the new generation", beats, NEWEST_HEARTBEAT)


@scenario(ApiKey.SYNC_GROUP, "5-5")
def members_late_to_sync_are_removed(stage: Stage) -> None:
    troupe = Troupe(stage)
    with troupe.another_client() as client:
        pair = Pair(stage, client)
        key = client.send(pair.sync(pair.follower, pair.generation), NEWEST_SYNC)
        pair.note("the leader does not assign in time", client.receive(key, NEWEST_SYNC))
        pair.ask("late leader", pair.heartbeat(pair.leader, pair.generation), NEWEST_HEARTBEAT)
        again = client.receive(pair.rejoin(pair.follower, client), NEWEST_JOIN)
        pair.note("follower leads", again)


@scenario(ApiKey.JOIN_GROUP, "9-9")
def waiting_requests_of_a_replaced_static_member_are_fenced(stage: Stage) -> None:
    troupe = Troupe(stage)
    with troupe.another_client() as client, troupe.another_client() as restarted:
        pair = Pair(stage, client, "b")
        waiting = client.send(pair.sync(pair.follower, pair.generation, group_instance_id="b"), NEWEST_SYNC)
        key = pair.begin_join(restarted, "restarted", "b")
        pair.note("sync", client.receive(waiting, NEWEST_SYNC))
        led = stage.client.receive(pair.rejoin(pair.leader, stage.client), NEWEST_JOIN)
        back = restarted.receive(key, NEWEST_JOIN)
        pair.names[back.member_id] = "restarted"
        pair.note("leader joins", led)
        pair.note("restarted joins", back)
