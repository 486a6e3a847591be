"""Imports while the component is built what functions import when they run, and explains what a call cannot import."""

import ast
import codecs
import importlib
import importlib.util
import os
import sys

from . import _component, _host, _native

# What the standard library imports only when it is used.
_ALWAYS = (
    "_strptime", "calendar", "copy", "encodings.ascii", "encodings.cp1252", "encodings.cp437", "encodings.cp850", "encodings.idna",
    "encodings.iso8859_15", "encodings.latin_1", "encodings.punycode", "encodings.raw_unicode_escape", "encodings.unicode_escape",
    "encodings.utf_16", "encodings.utf_16_be", "encodings.utf_16_le", "encodings.utf_32", "encodings.utf_32_be",
    "encodings.utf_32_le", "encodings.utf_7", "encodings.utf_8_sig", "heapq", "re", "stringprep", "unicodedata", "warnings",
)
# Those of mail in other languages: a header in one that `email` does not find silently loses its letters.
_OF_MAIL = (
    "big5", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874", "euc_jp", "euc_kr",
    "gb18030", "gb2312", "gbk", "iso2022_jp", "iso8859_2", "iso8859_5", "iso8859_7", "iso8859_9", "koi8_r", "koi8_u", "shift_jis",
)
# All of Python. What guesses an encoding tries each of them; without some it silently finds another one.
_CODECS = tuple(
    f"encodings.{name[:-3]}" for name in os.listdir(f"{_component.STANDARD}encodings") if name.endswith(".py") and name[0] != "_"
)
# The same, where the module before the colon is loaded.
_BESIDE = {
    "argparse": ("_colorize", "difflib", "shutil", "textwrap"),
    "chardet": _CODECS,
    "charset_normalizer": _CODECS,
    "concurrent.futures": ("concurrent.futures.thread",),
    "dbm": ("dbm.dumb", "dbm.sqlite3"),
    "email": (
        "email.charset", "email.generator", "email.message", "email.parser", "email.policy",
        *(f"encodings.{name}" for name in _OF_MAIL),
    ),
    "fractions": ("decimal",),
    "functools": ("annotationlib", "typing"),
    "gettext": ("locale", "struct"),
    "hmac": ("hashlib",),
    "importlib.metadata": ("csv", "importlib.metadata._adapters"),
    "importlib.resources": ("importlib.readers", "importlib.resources._adapters"),
    "pathlib": ("urllib.parse",),
    "pprint": ("dataclasses",),
    "shelve": ("dbm",),
    "sqlite3": ("sqlite3.dump",),
    "tarfile": ("bz2", "gzip", "lzma", "zlib"),
    "uuid": ("hashlib",),
    "xml.dom.minidom": ("xml.dom.expatbuilder", "xml.dom.pulldom"),
    "xml.etree.ElementTree": ("pyexpat", "xml.parsers.expat"),
    "xml.sax": ("xml.sax.expatreader", "xml.sax.saxutils"),
    "zoneinfo": ("importlib.resources", "tzdata"),
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def preload_standard():
    """Imports what the standard library would import in a call, as far as this Python has it."""
    names, known = list(_ALWAYS), set()
    while names:
        for name in names:
            try:
                importlib.import_module(name)
            except ImportError:
                pass
        fresh = [module for module in _BESIDE if module in sys.modules and module not in known]
        known.update(fresh)
        names = [name for module in fresh for name in _BESIDE[module]]


def preload(path, package):
    """Imports what the functions of the file import. Raises `ImportError` with the author's line.

    What a `try` or `suppress` is around may be missing.
    """
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if "async" in text:
        # A function that is not async itself can return a coroutine.
        importlib.import_module("toolcell._loop")
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    excused = {id(node) for block in ast.walk(tree) if _excuses(block) for node in ast.walk(block)}
    nodes = {id(node): node for function in functions for node in ast.walk(function)}
    for node in nodes.values():
        try:
            _import(node, package)
        except ImportError as error:
            if id(node) not in excused:
                raise _native.explained(error, f"{_component.authored(path)}:{node.lineno}") from None


def _excuses(block):
    if isinstance(block, ast.Try):
        return True
    if isinstance(block, ast.If):
        return _last(block.test) == "TYPE_CHECKING"
    return isinstance(block, ast.With) and any(_called(item.context_expr) == "suppress" for item in block.items)


def _import(node, package):
    """Imports what the node imports, if it imports something."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            _module(alias.name, package)
    elif isinstance(node, ast.ImportFrom):
        base = "." * node.level + (node.module or "")
        module = _module(base, package)
        for name in (alias.name for alias in node.names):
            if name != "*" and not hasattr(module, name):
                _module(f"{base}{name}" if base.endswith(".") else f"{base}.{name}", package)
    elif isinstance(node, ast.Call):
        _import_by_call(node, package)


def _import_by_call(node, package):
    """Imports a module whose name is a text in the source, and the codec of an encoding."""
    called, texts = _called(node), [argument.value for argument in node.args[:1] if _is_text(argument)]
    if called in ("import_module", "__import__"):
        given = node.args[1].value if called == "import_module" and len(node.args) > 1 and _is_text(node.args[1]) else package
        for name in texts:
            _module(name, given)
        return
    encodings = [keyword.value.value for keyword in node.keywords if keyword.arg == "encoding" and _is_text(keyword.value)]
    for name in encodings + (texts if called in ("encode", "decode", "lookup") else []):
        try:
            codecs.lookup(name)
        except (LookupError, ValueError):
            pass


def _module(name, package):
    try:
        if name.startswith(".") and not package:
            raise ImportError("attempted relative import with no known parent package")
        return importlib.import_module(name, package)
    except (ImportError, TypeError, ValueError) as error:
        raise ImportError(f"cannot import `{name}`: {error}") from None


def _called(node):
    return _last(node.func) if isinstance(node, ast.Call) else None


def _last(node):
    """The last name of `a` or `a.b.c`."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


class _Missing:
    """Is asked when no other finder has the module."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        # `importlib.util.find_spec` only asks whether there is such a module.
        is_import = sys._getframe(2).f_code.co_name == "_find_and_load_unlocked"
        if _host.state.is_in_cell and is_import:
            raise ModuleNotFoundError(
                f"No module named '{name}' in the component: import it at the top of the tool's file, because a call has no files",
                name=name,
            )


def _codec(name):
    if _host.state.is_in_cell:
        raise LookupError(
            f"unknown encoding: {name}: a call has no files; if Python has it, write `codecs.lookup({name!r})` at the top of the "
            "tool's file"
        )


def explain_missing():
    """Has a call say what to do where a module or an encoding is missing."""
    sys.meta_path.append(_Missing)
    codecs.register(_codec)
