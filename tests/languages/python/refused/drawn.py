# tool.py:19: a random number works in a handler only
# tool.py:20: os.urandom() works in a handler only
# tool.py:21: os.urandom() works in a handler only
# tool.py:22: os.urandom() works in a handler only
# tool.py:23: time.time() works in a handler only
# tool.py:24: datetime.now() works in a handler only
# tool.py:25: date.today() works in a handler only
# tool.py:26: time.localtime() works in a handler only
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
]


@tool
def count() -> int:
    """Counts."""
    return len(KEPT)
