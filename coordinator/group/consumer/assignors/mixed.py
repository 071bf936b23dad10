"""The uniform assignor where members are subscribed to different topics.

1. Members keep what they have.
2. Free partitions go to the subscriber that has least, the topics with the fewest subscribers first.
3. Members with more pass partitions on to members with less: directly, and where that leads no further, along chains of
   members (a gives to b, who gives of another topic to c). When no chain helps any more, no assignment is more even.

The search for chains has a budget, since subscriptions are the clients' to choose: a group of a thousand members with a
thousand different subscriptions may end up a little less even, not stall the coordinator.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from kavka.coordinator.group.consumer.assignment import Assignment
from kavka.coordinator.group.consumer.assignors.kept import kept_assignments
from kavka.coordinator.group.consumer.assignors.subscriber import Subscriber

CHAIN_BUDGET: Final = 100_000
"""Steps from member to member that the search for chains may look at; about 50 ms."""


def assign_mixed(subscribers: Sequence[Subscriber], partitions: Mapping[bytes, int]) -> dict[str, Assignment]:
    """Each member's assignment."""
    board = _Board(subscribers, partitions)
    board.hand_out(partitions)
    board.pass_on()
    board.pass_along_chains(CHAIN_BUDGET)
    return board.assignments()


class _Board:
    """Who holds what, while it is being moved about. Members and loads go by their index."""

    def __init__(self, subscribers: Sequence[Subscriber], partitions: Mapping[bytes, int]) -> None:
        self._subscribers = subscribers
        self._kept, self._taken = kept_assignments(subscribers, partitions)
        self._holds: list[dict[bytes, set[int]]] = [
            {topic_id: set(numbers) for topic_id, numbers in kept.items()} for kept in self._kept
        ]
        self._loads = [sum(map(len, holds.values())) for holds in self._holds]
        self._takers: dict[bytes, list[int]] = {}
        for index, each in enumerate(subscribers):
            for topic_id in each.topics:
                self._takers.setdefault(topic_id, []).append(index)

    def hand_out(self, partitions: Mapping[bytes, int]) -> None:
        loads = self._loads
        for topic_id, takers in sorted(self._takers.items(), key=lambda item: (len(item[1]), item[0])):
            taken = self._taken.get(topic_id, ())
            free = [number for number in range(partitions[topic_id]) if number not in taken]
            least = [(loads[index], index) for index in takers] if free else []
            heapify(least)
            for number in free:
                load, index = least[0]
                self._holds[index].setdefault(topic_id, set()).add(number)
                loads[index] = load + 1
                heapreplace(least, (load + 1, index))

    def pass_on(self) -> None:
        """Move single partitions until nobody can be given one by a member that has two more."""
        least = {topic_id: [(self._loads[i], i) for i in takers] for topic_id, takers in self._takers.items()}
        for heap in least.values():
            heapify(heap)
        moved = True
        while moved:
            moved = False
            for giver in sorted(range(len(self._loads)), key=self._loads.__getitem__, reverse=True):
                while (move := self._best_move(giver, least)) is not None:
                    topic_id, taker = move
                    self._move(topic_id, giver, taker)
                    for index in (giver, taker):
                        for subscribed in self._subscribers[index].topics:
                            heappush(least[subscribed], (self._loads[index], index))
                    moved = True

    def _best_move(self, giver: int, least: dict[bytes, list[tuple[int, int]]]) -> tuple[bytes, int] | None:
        loads, best, best_load = self._loads, None, self._loads[giver] - 1
        for topic_id in self._holds[giver]:
            heap = least[topic_id]
            while heap[0][0] != loads[heap[0][1]]:
                heappop(heap)
            if heap[0][0] < best_load:
                best, best_load = (topic_id, heap[0][1]), heap[0][0]
        return best

    def pass_along_chains(self, budget: int) -> None:
        for giver in sorted(range(len(self._loads)), key=self._loads.__getitem__, reverse=True):
            while budget > 0:
                chain, looked_at = self._chain(giver, budget)
                budget -= looked_at
                if not chain:
                    break
                for topic_id, start, end in chain:
                    self._move(topic_id, start, end)

    def _chain(self, giver: int, budget: int) -> tuple[list[tuple[bytes, int, int]], int]:
        """Moves that end at a member with at least two partitions less, the shortest; and how much was looked at."""
        low_enough, looked_at = self._loads[giver] - 2, 0
        came_by: dict[int, tuple[bytes, int]] = {}
        seen_topics: set[bytes] = set()
        queue = deque([giver])
        while queue and looked_at < budget:
            start = queue.popleft()
            for topic_id in self._holds[start]:
                if topic_id in seen_topics:
                    continue
                seen_topics.add(topic_id)
                looked_at += len(self._takers[topic_id])
                for end in self._takers[topic_id]:
                    if end == giver or end in came_by:
                        continue
                    came_by[end] = (topic_id, start)
                    if self._loads[end] <= low_enough:
                        return _walk_back(came_by, giver, end), looked_at
                    queue.append(end)
        return [], looked_at

    def _move(self, topic_id: bytes, giver: int, taker: int) -> None:
        """One partition of that topic: if possible one that the giver did not have before."""
        holds = self._holds[giver][topic_id]
        new = holds.difference(self._kept[giver].get(topic_id, ()))
        number = max(new or holds)
        holds.discard(number)
        if not holds:
            del self._holds[giver][topic_id]
        self._holds[taker].setdefault(topic_id, set()).add(number)
        self._loads[giver] -= 1
        self._loads[taker] += 1

    def assignments(self) -> dict[str, Assignment]:
        return {
            each.member_id: {topic_id: frozenset(numbers) for topic_id, numbers in holds.items()}
            for each, holds in zip(self._subscribers, self._holds, strict=True)
        }


def _walk_back(came_by: dict[int, tuple[bytes, int]], giver: int, end: int) -> list[tuple[bytes, int, int]]:
    """The chain in the order from its end: each member passes on before it is given."""
    chain = []
    while end != giver:
        topic_id, start = came_by[end]
        chain.append((topic_id, start, end))
        end = start
    return chain
