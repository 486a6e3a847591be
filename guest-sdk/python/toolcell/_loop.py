"""Runs a coroutine to its end. There are no sockets and no threads: only timers can wake it."""

import asyncio
import time


class NeverSettles(RuntimeError):
    """A handler awaits what no task and no timer will ever finish."""


class _Timers:
    def select(self, timeout):
        if timeout is None:
            raise NeverSettles("the handler awaits a future that never settles")
        if timeout > 0:
            time.sleep(timeout)
        return []

    def close(self):
        pass


class _Loop(asyncio.BaseEventLoop):
    def __init__(self):
        super().__init__()
        self._selector = _Timers()

    def _process_events(self, events):
        pass

    def _write_to_self(self):
        pass

    def run_in_executor(self, executor, function, *arguments):
        """Calls the function at once: there are no threads."""
        done = self.create_future()
        try:
            done.set_result(function(*arguments))
        except Exception as error:
            done.set_exception(error)
        return done


def install():
    """Makes `asyncio.run` in a handler use this loop: the one of the standard library needs sockets."""
    asyncio.new_event_loop = asyncio.events.new_event_loop = _Loop


def settled(coroutine):
    """What the coroutine returns."""
    loop = _Loop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(coroutine)
