"""From type hints to JSON Schema, and from JSON to the values that the hints promise."""

import dataclasses
import enum
import inspect
import json
import math
import types
import typing
from typing import Annotated, Any, Literal, NotRequired, ReadOnly, Required, Union

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_UNIONS = (Union, types.UnionType)


def schema_of(hint):
    """The JSON Schema of a type hint. `TypeError` names a hint that has none."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in (Any, inspect.Parameter.empty, object):
        return {}
    if origin is Annotated:
        texts = [text for text in arguments[1:] if isinstance(text, str)]
        return schema_of(arguments[0]) | ({"description": texts[0]} if texts else {})
    if isinstance(hint, type) and hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin is Literal:
        return _one_of(hint, arguments)
    if origin in _UNIONS:
        return {"anyOf": [schema_of(argument) for argument in arguments]}
    if hint is list or origin is list:
        return {"type": "array"} | ({"items": schema_of(arguments[0])} if arguments else {})
    if hint is dict or origin is dict:
        if arguments and arguments[0] is not str:
            raise TypeError(f"the keys of {hint} must be of the type str, as in JSON")
        return {"type": "object"} | ({"additionalProperties": schema_of(arguments[1])} if arguments else {})
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _one_of(hint, hint)
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        fields = [(field.name, hints[field.name], _default(field)) for field in dataclasses.fields(hint) if field.init]
        return object_of(fields)
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        return object_of([(name, *_unqualified(of, name in hint.__required_keys__)) for name, of in hints.items()])
    raise TypeError(
        f"the type {hint!r} has no JSON Schema; use str, int, float, bool, list, dict, Optional, Literal, "
        "an Enum, a dataclass or a TypedDict"
    )


def _one_of(hint, members):
    values = [member.value if isinstance(member, enum.Enum) else member for member in members]
    try:
        json.dumps(values, allow_nan=False)
    except (TypeError, ValueError):
        raise TypeError(f"a value of {hint!r} has no JSON form") from None
    return {"enum": values}


def object_of(fields, descriptions=None):
    """The schema of an object, of its fields' names, hints and defaults."""
    properties, required = {}, []
    for name, hint, default in fields:
        properties[name] = schema_of(hint)
        if descriptions and name in descriptions:
            properties[name]["description"] = descriptions[name]
        if default is inspect.Parameter.empty:
            required.append(name)
            continue
        default = default.value if isinstance(default, enum.Enum) else default
        # JSON has neither an infinite number nor NaN.
        if default is None or isinstance(default, (str, int)) or (isinstance(default, float) and math.isfinite(default)):
            properties[name]["default"] = default
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _unqualified(hint, is_required):
    """The hint of a TypedDict's member without `NotRequired` and the like, and what `object_of` takes as its default. The class
    itself does not know what a hint says that is a text, as after `from __future__ import annotations`."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        inner, default = _unqualified(arguments[0], is_required)
        return Annotated[inner, *arguments[1:]], default
    if origin in (Required, NotRequired, ReadOnly):
        return _unqualified(arguments[0], is_required if origin is ReadOnly else origin is Required)
    return hint, inspect.Parameter.empty if is_required else dataclasses.MISSING


def _default(field):
    if field.default is not dataclasses.MISSING:
        return field.default
    return inspect.Parameter.empty if field.default_factory is dataclasses.MISSING else field.default_factory


def value_of(hint, value):
    """The Python value of a JSON value that satisfies the hint's schema."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return value_of(arguments[0], value)
    if origin is Literal:
        return next(_members(arguments, value), value)
    if origin in _UNIONS:
        # A number with a point is a `float` if the union has it, and else can be an `int`.
        for argument in sorted(arguments, key=lambda argument: argument is int and isinstance(value, float)):
            if fits(argument, value):
                return value_of(argument, value)
        return value
    if origin is list and arguments:
        return [value_of(arguments[0], item) for item in value]
    if origin is dict and arguments:
        return {key: value_of(arguments[1], item) for key, item in value.items()}
    if hint is float and isinstance(value, int):
        return float(value)
    if hint is int and isinstance(value, float):
        return int(value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return next(_members(hint, value))
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        return hint(**{name: value_of(hints[name], item) for name, item in value.items()})
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint)
        return {name: value_of(hints[name], item) for name, item in value.items()}
    return value


def _members(members, value):
    """The members of an enumeration or a `Literal` that have this JSON value: a tuple is a list there, and Python's `True`, which
    is 1, is not."""
    for member in members:
        given = member.value if isinstance(member, enum.Enum) else member
        given = json.loads(json.dumps(given)) if isinstance(value, (list, dict)) else given
        if given == value and isinstance(given, bool) == isinstance(value, bool):
            yield member


def fits(hint, value):
    """Whether the value can be one of this hint's: tells the members of a union apart."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return fits(arguments[0], value)
    if origin in _UNIONS:
        return any(fits(argument, value) for argument in arguments)
    if origin is Literal:
        return any(True for _ in _members(arguments, value))
    if hint in (Any, inspect.Parameter.empty, object):
        return True
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return any(True for _ in _members(hint, value))
    if hint is bool or isinstance(value, bool):
        return hint is bool and isinstance(value, bool)
    if hint is float:
        return isinstance(value, (int, float))
    if hint is int and isinstance(value, float):
        return value.is_integer()
    if hint is list or origin is list:
        return isinstance(value, list) and all(fits(arguments[0], item) for item in value if arguments)
    if hint is dict or origin is dict:
        return isinstance(value, dict) and all(fits(arguments[1], item) for item in value.values() if arguments)
    if dataclasses.is_dataclass(hint) or typing.is_typeddict(hint):
        schema, hints = schema_of(hint), typing.get_type_hints(hint)
        is_of = isinstance(value, dict) and set(schema["required"]) <= set(value) <= set(schema["properties"])
        # Members of a union may have equal names, and differ in a `Literal`.
        return is_of and all(fits(hints[name], item) for name, item in value.items())
    return isinstance(hint, type) and isinstance(value, hint)
