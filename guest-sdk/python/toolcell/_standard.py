"""Has modules of Python do what they do elsewhere, where this Python lacks a part."""

import functools
import hashlib
import hmac
import locale as _locale
import os
import struct
import sys
import types
from importlib.machinery import PathFinder

from . import _host

_set_locale = _locale.setlocale


def _no_bz2(*_, **__):
    raise ModuleNotFoundError("No module named '_bz2': a component cannot read or write bzip2", name="_bz2")


# By a package's module: the module of Python in whose place it gets this.
_STAND_INS = {
    "networkx.utils.decorators": ("bz2", {"BZ2File": _no_bz2}),
    "sympy.external.gmpy": ("ctypes", {"c_long": struct.calcsize("l"), "sizeof": lambda size: size}),
}


def _pbkdf2(hash_name, password, salt, iterations, dklen=None):
    """`hashlib.pbkdf2_hmac`, which Python has of OpenSSL alone."""
    if iterations < 1:
        raise ValueError("iteration value must be greater than 0.")
    size = hashlib.new(hash_name).digest_size
    dklen = size if dklen is None else dklen
    if dklen < 1:
        raise ValueError("key length must be greater than 0.")
    keyed, derived = hmac.new(password, digestmod=hash_name), b""

    def authenticated(data):
        copy = keyed.copy()
        copy.update(data)
        return copy.digest()

    for block in range(1, -(-dklen // size) + 1):
        mixed = last = authenticated(bytes(salt) + block.to_bytes(4))
        mixed = int.from_bytes(mixed)
        for _ in range(iterations - 1):
            last = authenticated(last)
            mixed ^= int.from_bytes(last)
        derived += mixed.to_bytes(size)
    return derived[:dklen]


def _known_locale(category, locale=None):
    """`locale.setlocale`; the C library takes each name and changes nothing."""
    if isinstance(locale, tuple):
        locale = ".".join(filter(None, locale))
    # What it returns for all categories has a name for each.
    if locale is not None and any(name not in ("", "C", "POSIX", "C.UTF-8", "C.utf8") for name in locale.split(";")):
        raise _locale.Error("unsupported locale setting")
    return _set_locale(category, locale)


def _no_process(*_, **__):
    raise OSError("a component has no processes")


def _no_socket(event, arguments):
    if event.startswith("socket.") and not _host.state.is_in_cell:
        raise OSError(f"{event}: a component has no sockets: use `fetch` of toolcell")


class Zones:
    """Finds `tzdata` while modules are loaded, for a project that has none: writes the files that this one has."""

    def __init__(self, path):
        self._path = path

    def find_spec(self, name, path=None, target=None):
        if name != "tzdata":
            return None
        with open(self._path, "rb") as file:
            names, _, zones = file.read().partition(b"\n\n")
        sizes, package = [line.split() for line in names.decode().splitlines()], f"{self._path}.d/tzdata"
        _write(f"{package}/zones", "\n".join(zone for zone, _ in sizes).encode())
        _write(f"{package}/__init__.py", b"")
        for zone, size in sizes:
            _write(f"{package}/zoneinfo/{zone}", zones[:int(size)])
            zones = zones[int(size):]
        for folder, _, _ in os.walk(f"{package}/zoneinfo"):
            _write(f"{folder}/__init__.py", b"")
        return PathFinder.find_spec(name, [os.path.dirname(package)])


class StandIns:
    """Has modules of packages load that import a module of Python which a component lacks, and need little of it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = PathFinder.find_spec(name, path) if name in _STAND_INS else None
        if spec:
            spec.loader.exec_module = functools.partial(_execute, spec.loader.exec_module)
        return spec


def _execute(execute, module):
    lacking, content = _STAND_INS[module.__name__]
    sys.modules[lacking] = types.SimpleNamespace(**content)
    try:
        execute(module)
    finally:
        del sys.modules[lacking]


def _write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def install():
    """Takes their place. A socket that was tried while a module is loaded would leave a handle that no call has."""
    hashlib.pbkdf2_hmac = _pbkdf2
    _locale.setlocale = _known_locale
    # Packages name these while they are loaded: simpleeval forbids the one, and platformdirs imports the other. 0 is the owner of
    # each file here.
    os.system, os.getuid = _no_process, lambda: 0
    sys.addaudithook(_no_socket)
