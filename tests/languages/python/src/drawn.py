"""What is drawn while a module is loaded, and waits."""

import asyncio
import hashlib
import locale
import queue
import random
import socket
import threading
import time

GENERATOR, SEEDED = random.Random(), random.Random(7)
STATES = [GENERATOR.getstate(), random.getstate()]
CLOCKS = (time.monotonic, time.perf_counter, time.process_time)
BEGUN = [clock() for clock in CLOCKS]
try:
    TRIED = socket.getaddrinfo("example.com", 80)
except OSError as error:
    TRIED = str(error)


def waited(wait):
    """What it returns or raises, and whether it took its tenth of a second."""
    begun = time.monotonic()
    try:
        value = wait()
    except Exception as error:
        value = type(error).__name__
    return [value, time.monotonic() - begun >= 0.1]


def held():
    lock = threading.Lock()
    with lock:
        return lock.acquire(timeout=0.1)


def condition():
    changed = threading.Condition()
    with changed:
        return changed.wait(0.1)


WAITS = {
    "event": lambda: threading.Event().wait(0.1),
    "lock": held,
    "condition": condition,
    "semaphore": lambda: threading.Semaphore(0).acquire(timeout=0.1),
    "queue": lambda: queue.Queue().get(timeout=0.1),
    "simple queue": lambda: queue.SimpleQueue().get(timeout=0.1),
}


def unknown_locale():
    try:
        return locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
    except locale.Error as error:
        return str(error)


def lookup_after_a_try():
    try:
        return socket.getaddrinfo("example.com", 80)
    except OSError:
        return TRIED


ENDINGS = {
    "drawn generators": lambda: [GENERATOR.getstate() != STATES[0], random.getstate() != STATES[1]],
    "drawn seeded": SEEDED.random,
    "drawn clocks": lambda: [0 <= clock() - begun < 1 for clock, begun in zip(CLOCKS, BEGUN, strict=True)],
    "wait": lambda: {name: waited(wait) for name, wait in WAITS.items()},
    "wait endless": lambda: threading.Event().wait(),
    "thread": lambda: threading.Thread(target=print).start(),
    "to thread": lambda: asyncio.to_thread(sum, [1, 2]),
    "locale": unknown_locale,
    "pbkdf2": lambda: hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 2).hex(),
    "lookup": lookup_after_a_try,
}
