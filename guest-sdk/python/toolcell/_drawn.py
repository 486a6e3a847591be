"""Finds what modules draw from clocks and random numbers while they are loaded: each call would get the same values.

An author's module is refused. A package is named in a warning, unless it draws from the system: that may be a secret.
"""

import _random
import datetime
import functools
import itertools
import logging
import os
import random
import sys
import time
import types
import weakref

from . import _component, _host, _native

_TOOL_ID = 4
_ENTROPY = {os.urandom: "os.urandom()"}
_CLOCKS = {
    getattr(time, name): f"time.{name}()" for name in ("asctime", "ctime", "gmtime", "localtime", "strftime", "time", "time_ns")
}
# These tell the time if they have no argument.
_OF_A_TIME = (time.asctime, time.ctime, time.gmtime, time.localtime)
_DATES = ("now", "today", "utcnow")
_NUMBERS = ("getrandbits", "random")
# Clocks that count from no fixed time, and which takes their place: `process_time` counts from the start of the build.
_RELATIVE = {"process_time": "monotonic", "monotonic": "monotonic", "perf_counter": "perf_counter"}
# Seconds of the monotonic clock when a call begins.
_BEGIN = 24 * 60 * 60
_WHY = "works in a handler only: at the top of a module, each call would get the same value"
# These call their first argument, which is not seen if it is a function in C.
_CALLERS = (filter, iter, itertools.starmap, map)
_unseeded = weakref.WeakSet([random._inst])
_seed = random.Random.seed
_set_state = random.Random.setstate
# Bytes of a draw that is no secret: whether the system has random numbers is asked so.
_TRIAL = 4


def begin_call():
    """Makes new in a call what Python drew while the modules were loaded: without this, each call would draw the same numbers."""
    for generator in _unseeded:
        _seed(generator, os.urandom(16))
    logging._startTime = time.time_ns()


class Watch:
    """Notes what modules draw while they are loaded: texts with file and line."""

    def __init__(self):
        self.faults, self.warnings = {}, {}

    def __enter__(self):
        random.Random.seed, random.Random.setstate = _noted_seed, _noted_state
        random.seed, random.setstate = random._inst.seed, random._inst.setstate
        for name, clock in _RELATIVE.items():
            _stop(name, getattr(time, clock), float(_BEGIN))
            _stop(f"{name}_ns", getattr(time, f"{clock}_ns"), _BEGIN * 10**9)
        sys.monitoring.use_tool_id(_TOOL_ID, "toolcell")
        sys.monitoring.register_callback(_TOOL_ID, sys.monitoring.events.CALL, self._called)
        sys.monitoring.set_events(_TOOL_ID, sys.monitoring.events.CALL)
        return self

    def __exit__(self, *_):
        sys.monitoring.set_events(_TOOL_ID, 0)
        sys.monitoring.free_tool_id(_TOOL_ID)
        random.Random.seed, random.Random.setstate = _seed, _set_state
        random.seed, random.setstate = random._inst.seed, random._inst.setstate

    def _called(self, code, offset, called, first):
        # This runs for each call of a function while modules are loaded.
        if (type(called) is type or called is iter) and called in _CALLERS:
            called, first = first, ()
        while type(called) is functools.partial:
            called, first = called.func, called.args[0] if called.args else ()
        if type(called) is types.BuiltinFunctionType or type(called) is types.MethodDescriptorType:
            what = _drawn(called, first)
            if what:
                self._note(what, called in _ENTROPY and not (isinstance(first, int) and first < _TRIAL))

    def _note(self, what, is_entropy):
        frame = sys._getframe(2)
        while frame is not None:
            path = frame.f_code.co_filename
            if path.startswith(_component.STANDARD):
                # A module of the standard library that is loaded itself, and a line of the log, which is not written.
                if frame.f_code.co_name == "<module>" or path.startswith(_component.STANDARD + "logging/"):
                    return
            elif path.startswith(_component.OWN):
                return
            elif not path.startswith("<"):
                break
            frame = frame.f_back
        if frame is None:
            return
        # A package that an author's line calls draws for the author; one that is imported draws for itself.
        caller = frame
        while caller is not None and not caller.f_code.co_filename.startswith("<frozen importlib"):
            place = _component.authored(caller.f_code.co_filename)
            if place:
                self.faults.setdefault((place, caller.f_lineno), f"{place}:{caller.f_lineno}: {what} {_WHY}")
                return
            caller = caller.f_back
        name = _native.shown(path)
        if is_entropy:
            self.faults.setdefault((name, what), f"{name}:{frame.f_lineno}: {what} {_WHY}")
        else:
            text = f"{name}:{frame.f_lineno}: {what}: each call has the value of the build"
            self.warnings.setdefault((name.split("/")[0], what), text)


def _drawn(called, first):
    """What this function draws, or None."""
    if called in _OF_A_TIME and first is not sys.monitoring.MISSING and first is not None:
        return None
    if what := _ENTROPY.get(called) or _CLOCKS.get(called):
        return what
    name, of = called.__name__, getattr(called, "__self__", first)
    if name in _DATES and isinstance(of, type) and issubclass(of, datetime.date):
        return f"{of.__name__}.{name}()"
    if name in _NUMBERS and isinstance(of, _random.Random) and of in _unseeded:
        return "a random number"
    return None


def _noted_seed(self, a=None, version=2):
    _seed(self, a, version)
    if a is None:
        _unseeded.add(self)
    else:
        _unseeded.discard(self)


def _noted_state(self, state):
    _set_state(self, state)
    _unseeded.discard(self)


def _stop(name, clock, begin):
    """Has a clock stand still while modules are loaded: that of a call begins there."""
    setattr(time, name, lambda: clock() if _host.state.is_in_cell else begin)
