"""Runs a coroutine to its end. There are no sockets and no threads: timers and requests can wake it."""

import asyncio
import contextlib
import math
import time

from wit_world.imports import monotonic_clock, poll


class NeverSettles(RuntimeError):
    """A handler awaits what no task, timer or request will ever finish."""


class _Selector:
    def __init__(self):
        # The future that is done when the host says that this is ready.
        self.futures = {}

    def select(self, timeout):
        """The futures of what is ready, after this many seconds at most."""
        if self.futures:
            return self._ready(timeout)
        if timeout is None:
            raise NeverSettles("the handler awaits a future that never settles")
        if timeout > 0:
            time.sleep(timeout)
        return []

    def _ready(self, timeout):
        waits, futures = list(self.futures), list(self.futures.values())
        if timeout is None:
            return [futures[at] for at in poll.poll(waits)]
        with monotonic_clock.subscribe_duration(max(0, math.ceil(timeout * 1e9))) as timer:
            return [futures[at] for at in poll.poll([*waits, timer]) if at < len(futures)]

    def close(self):
        pass


class _Loop(asyncio.BaseEventLoop):
    def __init__(self):
        super().__init__()
        self._selector = _Selector()

    def _process_events(self, futures):
        for future in futures:
            if not future.done():
                future.set_result(None)

    async def until(self, pollable):
        """Waits until the host says that it is ready."""
        future = self._selector.futures[pollable] = self.create_future()
        try:
            await future
        finally:
            del self._selector.futures[pollable]

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
    """Returns what the coroutine returns. Tasks that are left are cancelled, as `asyncio.run` does."""
    loop = _Loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(coroutine)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        # One that goes on waits for what never comes: the result is there without it.
        with contextlib.suppress(NeverSettles):
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
