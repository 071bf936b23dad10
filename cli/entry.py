"""What the `kavka` command begins with: whoever interrupts it (SIGINT) while it still loads sees no traceback.

What is imported up here is imported before anything can be caught: nothing.
"""

INTERRUPTED = 130


def main() -> int:
    """Run the command. The exit code is `kavka.cli.main.main`'s, 130 when it was interrupted, however early."""
    is_interruptible = False
    try:
        import signal

        is_interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if is_interruptible:
            # Nothing has been done yet that wants an end in order, and an exception might be lost in an import.
            signal.signal(signal.SIGINT, _leave)
        from kavka.cli.main import main as run

        def ready() -> None:
            if is_interruptible:
                signal.signal(signal.SIGINT, signal.default_int_handler)

        return run(on_ready=ready)
    except KeyboardInterrupt:
        if is_interruptible:
            # Who interrupts again, while threads end, wants out at once.
            signal.signal(signal.SIGINT, _leave)
        return INTERRUPTED


def _leave(_number: int, _frame: object) -> None:
    import os

    os._exit(INTERRUPTED)
