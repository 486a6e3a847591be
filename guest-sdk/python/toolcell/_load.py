"""Loads the author's module while the component is built, and everything that a call would import: a call has no files."""

import importlib
import os
import sys

from . import _component, _imports, _tool


def load(module, folder):
    """Imports the module and what its functions import. Raises `ImportError` with the author's line.

    `folder` is the module's folder in the project, with a slash at its end: componentize-py hides it.
    """
    loaded = importlib.import_module(module)
    _component.ROOTS.append((os.path.dirname(loaded.__file__), folder))
    seen = set()
    while fresh := [item for item in _sources() if item[0] not in seen]:
        for path, package in fresh:
            seen.add(path)
            _imports.preload(path, package)
    _imports.preload_standard()
    if "asyncio" in sys.modules:
        from . import _loop

        _loop.install()
    if not _tool.TOOLS:
        raise TypeError("no tool was made: put the decorator `@tool` on a function at the top of the module")
    _imports.explain_missing()
    return _component.Tool


def _sources():
    """The path and the package of each module of the author."""
    files = ((getattr(module, "__file__", None), getattr(module, "__package__", None)) for module in list(sys.modules.values()))
    return [(path, package or "") for path, package in files if path and path.endswith(".py") and _component._authored(path)]
