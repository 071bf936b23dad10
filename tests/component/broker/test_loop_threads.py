"""A thread that runs a loop, and who waits for it."""

import threading

from kavka.broker.network.loop_thread import LoopThread


class ForgetfulThread(LoopThread):
    """One that stops just before it comes to what is called."""

    def __init__(self) -> None:
        super().__init__("forgetful", lambda failure: None)
        self.called = threading.Event()

    def call(self, *_: object) -> None:
        self.called.set()

    def stop(self) -> None:
        super().call(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


def test_who_waits_for_what_a_thread_never_comes_to_is_let_go_by_its_end() -> None:
    thread = ForgetfulThread()
    thread.start()
    waiter = threading.Thread(target=lambda: thread.call_and_wait(lambda: None), daemon=True)
    waiter.start()
    assert thread.called.wait(60)
    thread.stop()
    waiter.join(60)
    assert not waiter.is_alive()
