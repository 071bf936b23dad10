"""Work in slices gives the interpreter up in time, and nothing gets lost."""

from kavka.broker.requests.slices import LazyList, in_slices


class Clock:
    """Each item takes `step_ns`; pauses are counted."""

    def __init__(self, step_ns: int) -> None:
        self.now_ns = 0
        self.step_ns = step_ns
        self.pauses = 0

    def read(self) -> int:
        self.now_ns += self.step_ns
        return self.now_ns

    def pause(self, seconds: float) -> None:
        self.pauses += 1


def test_a_pause_comes_after_each_slice() -> None:
    clock = Clock(step_ns=100)

    items = list(in_slices(range(100), slice_ns=1000, now_ns=clock.read, pause=clock.pause))

    assert items == list(range(100))
    assert clock.pauses == 10


def test_short_work_is_not_interrupted() -> None:
    clock = Clock(step_ns=1)

    assert list(in_slices(range(100), slice_ns=1000, now_ns=clock.read, pause=clock.pause)) == list(range(100))
    assert clock.pauses == 0


def test_a_lazy_list_makes_its_items_each_time_they_are_wanted() -> None:
    made: list[int] = []

    def make(source: int) -> int:
        made.append(source)
        return source * 10

    lazy = LazyList([1, 2, 3], make)

    assert (len(lazy), bool(lazy), made) == (3, True, [])
    assert list(iter(lazy)) == [10, 20, 30]
    assert made == [1, 2, 3]
    assert not LazyList([], make)
