"""Loads the author's module while the component is built, and everything that a call would import: a call has no files."""

import ast
import importlib
import os
import sys

from . import _component, _tool

# What the standard library imports only when it is used.
_LATE = ("_strptime", "calendar", "encodings.ascii", "encodings.idna", "encodings.latin_1", "encodings.utf_16", "stringprep",
         "unicodedata")


def load(module, folder):
    """Imports the module and what its functions import. Raises `ImportError` with the author's line.

    `folder` is the module's folder in the project, with a slash at its end: componentize-py hides it.
    """
    loaded = importlib.import_module(module)
    _component.ROOTS.append((os.path.dirname(loaded.__file__), folder))
    for late in _LATE:
        try:
            importlib.import_module(late)
        except ImportError:
            pass
    seen = set()
    while fresh := [path for path in _sources() if path not in seen]:
        for path in fresh:
            seen.add(path)
            _preload(path)
    if "asyncio" in sys.modules:
        from . import _loop

        _loop.install()
    if not _tool.TOOLS:
        raise TypeError("no tool was made: put the decorator `@tool` on a function at the top of the module")
    return _component.Tool


def _sources():
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return [path for path in files if path and path.endswith(".py") and _component._authored(path)]


def _preload(path):
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    tried = {id(node) for block in ast.walk(tree) if isinstance(block, ast.Try) for part in block.body for node in ast.walk(part)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module]
        else:
            continue
        for name in names:
            try:
                importlib.import_module(name)
            except ImportError as error:
                if id(node) not in tried:
                    raise ImportError(f"{_component._authored(path)}:{node.lineno}: cannot import `{name}`: {error}") from None
