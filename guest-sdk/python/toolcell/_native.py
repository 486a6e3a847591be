"""Names the native code that an import needs, which a component cannot run, and packages that need sockets."""

import os
import sys
import traceback

from . import _component

_ALTERNATIVES = {
    "PIL": "decode images in a tool in C or Rust",
    "_ctypes": "nothing takes its place: a component loads no other libraries",
    "_socket": "use `fetch` of toolcell",
    "_ssl": "use `fetch` of toolcell, which speaks TLS",
    "cryptography": "use `hashlib`, `hmac` and `secrets`",
    "lxml": "use `xml.etree.ElementTree`, or beautifulsoup4 with `html.parser`",
    "numpy": "use lists with `math` and `statistics`, or mpmath",
    "orjson": "use `json`",
    "pandas": "use `csv` and `statistics`",
    "pydantic_core": "use a dataclass or a TypedDict, or install `pydantic<2`",
    # From 4 on, jsonschema cannot check schemas of draft 7 with the `urljoin` of this Python.
    "rpds": "use fastjsonschema, or jsonschema before 4",
}
_CLIENTS = ("aiohttp", "httpx", "requests", "urllib3")


def explained(error, place=None):
    """An `ImportError` that names the native code, or the error itself. `place` is the line of a function that imports."""
    cause = error
    while cause is not None:
        file = isinstance(cause, ImportError) and _native(cause)
        if file:
            chain = " → ".join(filter(None, dict.fromkeys([place, *_chain(error), *_chain(cause)])))
            name = cause.name.split(".")[0]
            advice = _ALTERNATIVES.get(name, "use a package of Python alone")
            what = f"`{cause.name}` is native code ({file}), which a component cannot run"
            return ImportError(f"{what}: {advice}; imported by {chain}")
        cause = cause.__cause__ or cause.__context__
    return ImportError(f"{place}: {error}") if place else error


def _native(error):
    """The file of the native module that was not found, or None."""
    name = error.name or ""
    if getattr(error, "name_from", None) and not isinstance(error, ModuleNotFoundError):
        # `from PACKAGE import MODULE`.
        name = f"{name}.{error.name_from}"
    if name in sys.stdlib_module_names and isinstance(error, ModuleNotFoundError):
        return "a part of Python that this one lacks"
    for folder in sys.path:
        place, last = os.path.split(os.path.join(folder, *name.split(".")))
        if name and os.path.isdir(place):
            for file in os.listdir(place):
                if file.startswith(f"{last}.") and file.endswith((".so", ".pyd")):
                    return file
    return None


def _chain(error):
    """The lines that import one another, the author's first."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name == "<module>"]
    frames = [frame for frame in frames if not frame.filename.startswith(("<", _component.OWN, _component.STANDARD))]
    return [f"{shown(frame.filename)}:{frame.lineno}" for frame in frames]


def shown(path):
    """The path in the author's project, or below the folder of packages."""
    return _component.authored(path) or next(
        (os.path.relpath(path, folder) for folder in sys.path if path.startswith(folder + "/")), path
    )


def clients():
    """Warnings of packages that send requests over sockets."""
    for name in _CLIENTS:
        if name in sys.modules:
            yield f"`{name}` cannot send a request from a component, which has no sockets: use `fetch` of toolcell"
