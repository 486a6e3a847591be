# tool.py:25: a random number works in a handler only
# tool.py:26: os.urandom() works in a handler only
# tool.py:27: os.urandom() works in a handler only
# tool.py:28: os.urandom() works in a handler only
# tool.py:29: time.time() works in a handler only
# tool.py:30: datetime.now() works in a handler only
# tool.py:31: date.today() works in a handler only
# tool.py:32: time.localtime() works in a handler only
# tool.py:33: os.urandom() works in a handler only
# tool.py:34: a random number works in a handler only
# tool.py:35: time.time() works in a handler only
# tool.py:36: a random number works in a handler only
import functools
import itertools
import os
import random
import secrets
import time
import uuid
from datetime import date, datetime

from toolcell import tool

KEPT = [
    random.random(),
    os.urandom(8),
    secrets.token_hex(),
    uuid.uuid4(),
    time.time(),
    datetime.now(),
    date.today(),
    time.localtime(),
    *map(os.urandom, [16]),
    *itertools.starmap(random.random, [()]),
    *itertools.islice(iter(time.time, None), 1),
    functools.partial(random.getrandbits, 64)(),
    *map(time.gmtime, [0]),
]


@tool
def count() -> int:
    """Counts."""
    return len(KEPT)
