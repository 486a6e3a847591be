"""Compares the answers of `tests/platform/python.txt` with those of this Python."""

import asyncio
import base64
import bisect
import calendar
import codecs
import collections
import concurrent.futures
import contextlib
import copy
import csv
import dataclasses
import datetime
import decimal
import difflib
import email
import email.message
import email.policy
import email.utils
import enum
import fractions
import functools
import gzip
import hashlib
import heapq
import hmac
import html
import html.parser
import http.cookies
import importlib.resources
import io
import ipaddress
import itertools
import json
import locale
import math
import mimetypes
import operator
import os
import pathlib
import pickle
import pprint
import queue
import random
import re
import secrets
import shelve
import shlex
import shutil
import sqlite3
import statistics
import string
import struct
import sys
import tempfile
import textwrap
import threading
import time
import tomllib
import types
import typing
import unicodedata
import urllib.parse
import uuid
import xml.etree.ElementTree
import zipfile
import zlib
import zoneinfo

# Those of the expressions: a function that names them in its source would do.
for name in ("iso8859-2", "koi8-r", "rot13", "shift_jis"):
    codecs.lookup(name)


def value(expression):
    try:
        return repr(eval(expression, dict(globals())))
    except Exception as error:
        return f"raises {type(error).__name__}"


def differences(text, mark):
    """The expressions with another answer, each with that. After an expression a line with `= ` has the answer of CPython 3.11,
    one with `~ ` that of a component where it differs, and `# ` is why. `mark` chooses the answer."""
    found, expression, answers = [], None, {}
    for line in [*text.splitlines(), ""]:
        if line[:2] in ("= ", "~ ", "# "):
            answers[line[:1]] = line[2:]
            continue
        if expression and value(expression) != (expected := answers.get(mark, answers["="])):
            found.append(f"{expression}\n  gives {value(expression)}\n  and not {expected}")
        expression, answers = line, {}
    return found


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        found = differences(file.read(), "=")
    print(*found, sep="\n")
    sys.exit(bool(found))
