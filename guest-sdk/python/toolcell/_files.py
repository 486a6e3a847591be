"""Keeps the files of imported packages in the component, and has a call read them: it has no other files of the build.

`open`, `os`, `pathlib`, `importlib.resources` and `pkgutil` find them at the paths that they had in the build. A module
that is imported late is compiled from its source.
"""

import builtins
import contextlib
import functools
import importlib.util
import io
import os
import re
import stat
import sys
import zlib
from importlib import _bootstrap_external
from importlib.machinery import SourceFileLoader

from . import _component

# Bytes of one package's files, compressed, and as they are.
_MOST = 12 << 20
_MOST_READ = 48 << 20
# Bytes of the list of a distribution's files that is read.
_MOST_LISTED = 1 << 20
_OMITTED_FOLDERS = ("__pycache__", "test", "tests")
# Keys, which would be readable in the component.
_KEYS = (".key", ".p12", ".pfx")
# What `importlib.metadata` reads. Other files tell where the package was installed from.
_METADATA = ("METADATA", "RECORD", "entry_points.txt", "top_level.txt")
_OMITTED_FILES = (".a", ".c", ".cpp", ".dll", ".h", ".pxd", ".pyc", ".pyd", ".pyi", ".pyx", ".so")
# Where componentize-py has modules of its own.
_OF_THE_BUILD = ("/bundled/", "/world/")
# Modules of Python that do more than to be there.
_OMITTED_MODULES = ("antigravity", "idlelib", "test", "this")
# The module, and what is imported from it.
_IMPORT = re.compile(
    r"^[ \t]*(?:import[ \t]+([a-z_]\w*(?:\.\w+)*)|from[ \t]+([a-z_]\w*(?:\.\w+)*)[ \t]+import[ \t]*(\([^)]*|[^\n]*))", re.MULTILINE
)
# The compressed content and the size by path, and the names in each folder.
_files, _folders = {}, {}
_real = {name: getattr(os, name) for name in ("listdir", "scandir", "stat")}
_real_open, _real_get_data = io.open, _bootstrap_external.FileLoader.get_data


def collect():
    """Keeps the files of each imported package, and imports the modules of Python that their sources name. Returns warnings."""
    warnings, imports, named = [], set(), []
    loaded = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    for name, folders in _packages().items():
        found, paths = {}, {path: size for folder in folders for path, size in _below(folder)}
        if sum(paths.values()) > _MOST_READ:
            warnings.append(_too_large(name, sum(paths.values()), _MOST_READ))
            continue
        for path in paths:
            try:
                with _real_open(path, "rb") as file:
                    data = file.read()
                if path.endswith(".pem") and b"PRIVATE KEY" in data:
                    continue
            except OSError as error:
                warnings.append(f"a file of the package `{name}` is not in the component: {os.path.basename(path)}: {error.strerror}")
                continue
            if path.endswith(".py"):
                for module, package, names in _IMPORT.findall(data.decode("utf-8", "replace")):
                    imports.update([module or package, *(f"{package}.{part}" for part in re.findall(r"\w+", names))])
            if path in loaded:
                # `pkgutil.iter_modules` lists it.
                named.append(path)
            else:
                found[path] = (zlib.compress(data), len(data))
        size = sum(len(compressed) for compressed, _ in found.values())
        if size > _MOST:
            warnings.append(_too_large(name, size, _MOST))
        else:
            _files.update(found)
    for path in [*_files, *named]:
        while path not in sys.path and (folder := os.path.dirname(path)) != path:
            _folders.setdefault(folder, set()).add(os.path.basename(path))
            path = folder
    for name in sorted(imports):
        top = name.split(".")[0]
        if top in sys.stdlib_module_names and top not in _OMITTED_MODULES:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    return warnings


def _packages():
    """The folders of each imported package that is not of Python or of the build, and those of its metadata."""
    found = {}
    for name, module in list(sys.modules.items()):
        # A folder without `__init__.py` may be anything.
        is_package = "." not in name and getattr(module, "__file__", None)
        for folder in getattr(module, "__path__", ()) if is_package else ():
            if not folder.startswith((_component.STANDARD, _component.OWN, *_OF_THE_BUILD)) and os.path.isdir(folder):
                found.setdefault(name, []).append(folder)
    for name, folders in found.items():
        folders += {place for folder in folders for place in _metadata(os.path.dirname(folder), f"{name}/".encode())}
    return found


def _metadata(folder, prefix):
    """The folders of metadata, beside a package, that list files of it."""
    for name in os.listdir(folder):
        record = os.path.join(folder, name, "RECORD")
        # A long list would be kept with the memory of the component; it is one of a package that has no Python.
        if name.endswith(".dist-info") and os.path.isfile(record) and os.stat(record).st_size < _MOST_LISTED:
            with _real_open(record, "rb") as file:
                if prefix in file.read():
                    yield os.path.dirname(record)


def _below(folder):
    """The path and the size of each file that is kept."""
    is_metadata = folder.endswith(".dist-info")
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _OMITTED_FOLDERS and not name.startswith(".")]
        for name in names:
            path = os.path.join(place, name)
            is_kept = name in _METADATA if is_metadata else not name.startswith(".") and not name.endswith(_OMITTED_FILES + _KEYS)
            with contextlib.suppress(OSError):
                # A link without a file, and what is no file, is left out.
                if is_kept and stat.S_ISREG((status := os.stat(path)).st_mode):
                    yield path, status.st_size


def _too_large(name, size, most):
    return f"the files of the package `{name}` are not in the component: {size} bytes, and at most {most} can be; a call that reads one fails"


def serve():
    """Has a call find the files."""
    builtins.open = io.open = _open
    os.listdir, os.stat, os.scandir = _listdir, _stat, _scandir
    os.lstat = functools.partial(_stat, follow_symlinks=False)
    os.supports_follow_symlinks.add(_stat)
    _bootstrap_external.FileLoader.get_data = _get_data
    sys.meta_path.append(_Late)


def _kept(path):
    """The path as it is kept, or None if it is none of these files and folders."""
    if not isinstance(path, (str, os.PathLike)):
        return None
    path = os.path.normpath(os.fspath(path))
    return path if path in _files or path in _folders else None


def _content(path):
    return zlib.decompress(_files[path][0])


def _open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
    path = _kept(file)
    if path not in _files or set(mode) & set("wax+"):
        return _real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    data = io.BytesIO(_content(path))
    return data if "b" in mode else io.TextIOWrapper(data, encoding or "utf-8", errors, newline)


def _get_data(self, path):
    kept = _kept(path)
    return _content(kept) if kept in _files else _real_get_data(self, path)


def _listdir(path="."):
    kept = _kept(path)
    return sorted(_folders[kept]) if kept in _folders else _real["listdir"](path)


def _stat(path, **options):
    kept = _kept(path)
    if kept is None:
        return _real["stat"](path, **options)
    is_file = kept in _files
    size = _files[kept][1] if is_file else 0
    return os.stat_result((0o444 | (stat.S_IFREG if is_file else stat.S_IFDIR), 0, 0, 1, 0, 0, size, 0, 0, 0))


class _Entry:
    """An entry of `os.scandir`."""

    def __init__(self, folder, name):
        self.name, self.path = name, os.path.join(folder, name)

    def __fspath__(self):
        return self.path

    def is_dir(self, *, follow_symlinks=True):
        return _kept(self.path) in _folders

    def is_file(self, *, follow_symlinks=True):
        return _kept(self.path) in _files

    def is_symlink(self):
        return False

    is_junction = is_symlink

    def stat(self, *, follow_symlinks=True):
        return _stat(self.path)


class _Entries:
    """What `os.scandir` returns."""

    def __init__(self, entries):
        self._entries = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._entries)

    def close(self, *_):
        pass

    __enter__, __exit__ = __iter__, close


def _scandir(path="."):
    kept = _kept(path)
    return _Entries(_Entry(path, name) for name in sorted(_folders[kept])) if kept in _folders else _real["scandir"](path)


class _Late:
    """Finds a module among the files."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        for folder in sys.path if path is None else path:
            place = os.path.join(folder, name.rpartition(".")[2])
            if f"{place}/__init__.py" in _files:
                file, folders = f"{place}/__init__.py", [place]
            elif f"{place}.py" in _files:
                file, folders = f"{place}.py", None
            else:
                continue
            loader = SourceFileLoader(name, file)
            return importlib.util.spec_from_file_location(name, file, loader=loader, submodule_search_locations=folders)
        return None
