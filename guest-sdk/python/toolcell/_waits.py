"""Has a call wait where Python's own functions return at once: a component has one thread, and nothing wakes it but the time."""

import _thread
import queue
import threading
import time

_ENDLESS = "this waits without end: a component has one thread, and no other thread can end the wait"
_THREADLESS = (
    "can't start new thread: a component has one thread; call the function itself, or await `asyncio.to_thread(function)`, which "
    "calls it at once"
)


class _Lock:
    """A `threading.Lock` whose `acquire` waits its time."""

    def __init__(self):
        self._lock = _thread.allocate_lock()

    def acquire(self, blocking=True, timeout=-1):
        if not blocking and timeout != -1:
            raise ValueError("can't specify a timeout for a non-blocking call")
        if timeout < 0 and timeout != -1:
            raise ValueError("timeout value must be a non-negative number")
        if self._lock.acquire(False):
            return True
        if blocking:
            _wait(None if timeout == -1 else timeout)
        return False

    def release(self):
        self._lock.release()

    def __getattr__(self, name):
        if name == "_lock":
            raise AttributeError(name)
        return getattr(self._lock, name)

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()


def _wait(seconds):
    if seconds is None:
        raise RuntimeError(_ENDLESS)
    time.sleep(max(0, seconds))


def _wait_for_condition(condition, timeout=None):
    if not condition._is_owned():
        raise RuntimeError("cannot wait on un-acquired lock")
    _wait(timeout)
    return False


def _start(thread):
    raise RuntimeError(_THREADLESS)


def install():
    """Takes the place of what cannot wait, and of what cannot start a thread."""
    threading.Lock = threading._allocate_lock = _Lock
    threading.Condition.wait = _wait_for_condition
    threading.Thread.start = _start
    queue.SimpleQueue = queue._PySimpleQueue
