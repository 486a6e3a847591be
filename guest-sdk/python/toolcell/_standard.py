"""Has modules of Python do what they do elsewhere, where this Python lacks a part."""

import hashlib
import hmac
import locale as _locale
import sys

from . import _host

_set_locale = _locale.setlocale


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


def _no_socket(event, arguments):
    if event.startswith("socket.") and not _host.state.is_in_cell:
        raise OSError(f"{event}: a component has no sockets: use `fetch` of toolcell")


def install():
    """Takes their place. A socket that was tried while a module is loaded would leave a handle that no call has."""
    hashlib.pbkdf2_hmac = _pbkdf2
    _locale.setlocale = _known_locale
    sys.addaudithook(_no_socket)
