"""Loads the author's module while the component is built, and everything that a call would import: a call has no files."""

import importlib
import importlib.util
import os
import sys

from . import _component, _drawn, _files, _imports, _native, _standard, _tool, _waits


def load(module, folder):
    """Imports the module and what its functions import. Raises `ImportError` with the author's line.

    `folder` is the module's folder in the project, with a slash at its end: componentize-py hides it.
    """
    _component.ROOTS.append((os.path.dirname(importlib.util.find_spec(module).origin), folder))
    beside = os.path.dirname(_component.OWN)
    _standard.install()
    zones = _standard.Zones(os.path.join(beside, "zones"))
    # The last one: a `tzdata` of the project goes first.
    sys.meta_path[:] = [_standard.StandIns, *sys.meta_path, zones]
    _waits.install()
    with _drawn.Watch() as watch:
        try:
            importlib.import_module(module)
        except ImportError as error:
            explained = _native.explained(error)
            if explained is error:
                raise
            raise explained from None
        seen = set()
        while fresh := [item for item in _sources() if item[0] not in seen]:
            for path, package in fresh:
                seen.add(path)
                _imports.preload(path, package)
        _imports.preload_standard()
        warnings = _files.collect()
        _imports.preload_standard()
    sys.meta_path[:] = sys.meta_path[1:-1]
    if watch.faults:
        raise ImportError("\n".join(watch.faults.values()))
    if "asyncio" in sys.modules:
        from . import _loop

        _loop.install()
    if not _tool.TOOLS:
        raise TypeError("no tool was made: put the decorator `@tool` on a function at the top of the module")
    _files.serve()
    _imports.explain_missing()
    warnings += [*watch.warnings.values(), *_native.clients()]
    if warnings:
        with open(os.path.join(beside, "warnings"), "w") as file:
            file.write("\n".join(warnings))
    return _component.Tool


def _sources():
    """The path and the package of each module of the author."""
    files = ((getattr(module, "__file__", None), getattr(module, "__package__", None)) for module in list(sys.modules.values()))
    return [(path, package or "") for path, package in files if path and path.endswith(".py") and _component.authored(path)]
