"""The decorator `tool`: from a function to a tool's definition."""

import dataclasses
import inspect
import re
import types
import typing
from typing import Any, Optional

from . import _schema

TOOLS = {}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ARGUMENT = re.compile(r"\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)")
_SECTIONS = ("args:", "arguments:", "parameters:")


@dataclasses.dataclass(frozen=True)
class Need:
    """Something that the tool needs, which an operator grants or refuses."""

    kind: str
    pattern: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Context:
    """Where the call comes from. A parameter of this type gets it. A field that the caller did not give is None."""

    call_id: str
    remaining_ms: int
    attempt: int
    session_id: Optional[str] = None
    request_id: Optional[str] = None
    thread_id: Optional[str] = None
    run_id: Optional[str] = None
    tenant: Optional[str] = None
    metadata: Any = None
    is_answered: bool = False
    answer: Any = None
    state: Any = None


@dataclasses.dataclass
class Tool:
    """A tool: its function and its definition."""

    name: str
    function: Any
    description: str
    parameters: dict
    hints: dict
    context: Optional[str]
    needs: list
    options: dict

    def arguments(self, given, context):
        """The keyword arguments of a call."""
        arguments = {name: _schema.value_of(self.hints[name], value) for name, value in given.items()}
        return arguments | ({self.context: context} if self.context else {})


def tool(function=None, /, *, name=None, description=None, needs=(), output=None, attributes=None, read_only=False,
         idempotent=False, destructive=False, open_world=False, max_execution_ms=None, validate=None, visible=None):
    """Makes a tool of a function: its type hints become the JSON Schema, its docstring the descriptions."""

    def make(function):
        _make(function, name, description, needs, {
            "output": output, "attributes": attributes or {}, "read_only": read_only, "idempotent": idempotent,
            "destructive": destructive, "open_world": open_world, "max_execution_ms": max_execution_ms, "validate": validate,
            "visible": visible,
        })
        return function

    return make if function is None else make(function)


def _make(function, name, description, needs, options):
    name = name or function.__name__
    about = f"tool {name!r}"
    if not _NAME.fullmatch(name):
        raise TypeError(f"{about}: a name has 1 to 64 of the characters A-Z, a-z, 0-9, _ and -")
    if name in TOOLS:
        raise TypeError(f"{about}: two tools have this name")
    signature = inspect.signature(function).parameters
    text, descriptions = _documented(inspect.getdoc(function) or "", signature)
    if not (description or text):
        raise TypeError(f"{about}: the docstring is missing: the model reads it to choose the tool")
    needs = [need if isinstance(need, Need) else Need(*need) for need in needs]
    hints = typing.get_type_hints(function, include_extras=True)
    fields, context = [], None
    for parameter in signature.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{about}: the parameter {parameter} cannot be passed by name: use neither *args, **kwargs nor `/`")
        hint = hints.get(parameter.name, Any)
        if _is_context(hint):
            context = parameter.name
        else:
            fields.append((parameter.name, hint, parameter.default))
    try:
        parameters = _schema.object_of(fields, descriptions)
        if not isinstance(options["output"], (dict, type(None))):
            options["output"] = _schema.schema_of(options["output"])
    except TypeError as error:
        raise TypeError(f"{about}: {error}") from None
    except RecursionError:
        raise TypeError(f"{about}: a type that contains itself has no JSON Schema; use `list` or `dict` where it does") from None
    if inspect.iscoroutinefunction(function):
        # What is imported now is part of the component; a call has no files to import from.
        from . import _loop  # noqa: F401
    kept = {name: hint for name, hint, _ in fields}
    TOOLS[name] = Tool(name, function, description or text, parameters, kept, context, needs, options)


def _is_context(hint):
    """Whether a parameter of this hint gets the context: `Context | None` too, or the model would fill it in."""
    is_of_others = typing.get_origin(hint) in (typing.Annotated, typing.Union, types.UnionType)
    return hint is Context or is_of_others and any(map(_is_context, typing.get_args(hint)))


def _documented(text, names):
    """The first paragraph, and the descriptions of the parameters with these names."""
    paragraph, _, _ = text.partition("\n\n")
    first = [line.strip() for line in paragraph.splitlines()]
    descriptions, name, is_in = {}, None, False
    for line in text.splitlines():
        if line.strip().lower() in _SECTIONS:
            is_in = True
        elif is_in and line.strip() and not line.startswith((" ", "\t")):
            is_in = False
        elif is_in and (found := _ARGUMENT.fullmatch(line.strip())) and found[1] in names:
            name = found[1]
            descriptions[name] = found[2]
        elif is_in and name and line.strip():
            descriptions[name] += " " + line.strip()
    return " ".join(first), descriptions
