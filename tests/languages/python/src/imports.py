"""Imports that a call makes, in each of the forms that Python has."""

from typing import TYPE_CHECKING

from parts import whole

if TYPE_CHECKING:
    import not_installed


def submodule():
    from xml.etree import ElementTree

    return ElementTree.fromstring("<a><b/></a>").find("b").tag


def module_of_a_package():
    from parts import inner

    return inner.NAME


def attribute():
    from parts import whole as same

    return same()


def by_name():
    import importlib

    return importlib.import_module("colorsys").rgb_to_hsv(0, 0, 1)[2]


def by_relative_name():
    import importlib

    return importlib.import_module(".named", "parts").NAME


def by_builtin():
    return __import__("quopri").__name__


def fallback():
    try:
        import tomlib_of_old as toml
    except ImportError:
        import tomllib as toml
    return toml.loads("a = 1")["a"]


def suppressed():
    import contextlib

    with contextlib.suppress(ImportError):
        import not_installed

        return not_installed.NAME
    return "nothing"


def executor():
    import concurrent.futures

    return concurrent.futures.ThreadPoolExecutor(1).__class__.__name__


def message():
    from email.message import Message

    made = Message()
    made["Subject"] = "Grüße"
    return made.as_string().strip()


def zone():
    import zoneinfo

    try:
        return str(zoneinfo.ZoneInfo("Nowhere/Else"))
    except zoneinfo.ZoneInfoNotFoundError:
        return "not found"


def zones():
    import datetime
    import zoneinfo

    summer = datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Zurich"))
    return [summer.isoformat(), len(zoneinfo.available_timezones()) > 500]


def data():
    import importlib.resources
    import os
    import pathlib
    import pkgutil

    import parts

    path = pathlib.Path(parts.__file__).parent / "note.txt"
    with open(path, encoding="utf-8") as file:
        texts = [file.read(), path.read_text(), pkgutil.get_data("parts", "note.txt").decode()]
    texts.append(importlib.resources.files("parts").joinpath("note.txt").read_text())
    return [set(texts) == {"Grüße\n"}, path.stat().st_size, os.path.exists(path.parent / "none"), sorted(os.listdir(path.parent))]


def links():
    """What `os.lstat` asks of the system: a call of these tests has no folder with links."""
    import os

    from toolcell import _files

    asked, real = [], _files._real["stat"]
    _files._real["stat"] = lambda path, **options: asked.append(options)
    try:
        os.lstat("/data")
    finally:
        _files._real["stat"] = real
    return [asked, os.stat in os.supports_follow_symlinks]


def late_in_a_package(name="".join(["par", "ts.un", "named"])):
    import importlib

    return importlib.import_module(name).NAME


def encodings():
    return [b"\x80".decode(name) for name in ("cp1252", "cp437")] + [b"\xe4".decode("cp1251"), str(b"\xb1", encoding="iso8859-2")]


def computed(name="".join(["wa", "ve"])):
    return __import__(name)


def looked_for(name="".join(["wa", "ve"])):
    import importlib.util

    return importlib.util.find_spec(name)


def computed_encoding():
    return b"a".decode("-".join(["iso8859", "16"]))


ENDINGS = {
    f"import {function.__name__}": function
    for function in (
        submodule, module_of_a_package, attribute, by_name, by_relative_name, by_builtin, fallback, suppressed, executor, message,
        zone, zones, data, links, late_in_a_package, encodings, computed, looked_for, computed_encoding,
    )
} | {"import relative": whole}
