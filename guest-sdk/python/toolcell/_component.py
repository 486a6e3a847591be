"""The exports of the toolcell world."""

import inspect
import itertools
import json
import os
import sys

from wit_world.exports import tool as abi

from . import _drawn, _endings, _host, _tool

_MAX_CAUSES = 5
OWN = os.path.dirname(__file__)
# The folder of Python's own modules.
STANDARD = os.path.dirname(inspect.__file__) + "/"
# The folders of the author's modules, and what each is called in the project.
ROOTS = []


class Tool:
    """What the host calls."""

    def describe(self):
        return _in_cell(lambda: [_definition(tool) for tool in _tool.TOOLS.values()])

    def validate(self, call):
        def validate():
            tool = _tool.TOOLS[call.name]
            arguments = tool.arguments(json.loads(call.arguments), None)
            arguments.pop(tool.context, None)
            faults = _settled(tool.options["validate"](**arguments))
            return [_endings.words(faults)] if isinstance(faults, str) else [_endings.words(fault) for fault in faults or ()]

        return _in_cell(validate)

    def visible(self, name, context):
        return _in_cell(lambda: bool(_settled(_tool.TOOLS[name].options["visible"](_context("", context)))))

    def execute(self, call, context):
        def execute():
            tool = _tool.TOOLS[call.name]
            try:
                given = _context(call.id, context)
                return _outcome(_settled(tool.function(**tool.arguments(json.loads(call.arguments), given))))
            except _endings.ToolFailure as failure:
                return _failure(failure)
            except ExceptionGroup as group:
                # A `TaskGroup` has its tasks' errors in one.
                failure, others = group.split(_endings.ToolFailure)
                if others:
                    raise
                while isinstance(failure, ExceptionGroup):
                    failure = failure.exceptions[0]
                return _failure(failure)

        return _in_cell(execute)


def _in_cell(work):
    """Runs the work. What it raises becomes the text of `handler_raised`."""
    _host.state.is_in_cell = True
    _drawn.begin_call()
    try:
        return work()
    except BaseException as error:
        text = described(error)
    sys.stderr.write(text)
    sys.stderr.flush()
    os.abort()


def _settled(value):
    if not inspect.iscoroutine(value):
        return value
    from . import _loop

    return _loop.settled(value)


def described(error, depth=0):
    """The error's type and message, the author's lines of its traceback, the innermost first, and the errors that it was
    raised from or that are in its group."""
    try:
        message = str(error)
    except BaseException as failed:
        message = f"its text cannot be made: __str__ raised {type(failed).__name__}"
    if not message and isinstance(error, MemoryError):
        message = "out of memory"
    lines, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        place = authored(code.co_filename)
        if place:
            name = code.co_name if code.co_name.isidentifier() else "<module>" if code.co_name == "<module>" else "<anonymous>"
            lines.append(f"    at {name} ({place}:{trace.tb_lineno})")
        trace = trace.tb_next
    shown = []
    for line, equal in itertools.groupby(lines[::-1]):
        count = len(list(equal))
        # A recursion has hundreds of equal lines.
        shown += [line, f"    … {count - 1} more times"] if count > 2 else [line] * count
    if len(shown) > 20:
        shown = shown[:10] + [f"    … {len(shown) - 20} more"] + shown[-10:]
    causes = [error.__cause__, *(error.exceptions if isinstance(error, BaseExceptionGroup) else ())]
    causes = [cause for cause in causes if cause is not None][:_MAX_CAUSES] if depth < _MAX_CAUSES else []
    caused = [f"caused by: {described(cause, depth + 1)}" for cause in causes]
    return "\n".join([f"{type(error).__name__}: {message}" if message else type(error).__name__, *shown, *caused])


def authored(path):
    """The path below the author's project, or None."""
    for root, folder in ROOTS:
        if path.startswith(root + "/") and not path.startswith(OWN):
            return folder + path[len(root) + 1:]
    return None


def _context(call_id, given):
    def read(text):
        return None if text is None else json.loads(text)

    resume = given.resume
    return _tool.Context(
        call_id=call_id, remaining_ms=given.remaining_ms, attempt=given.attempt, session_id=given.session_id,
        request_id=given.request_id, thread_id=given.thread_id, run_id=given.run_id, tenant=given.tenant,
        metadata=read(given.metadata), is_answered=resume is not None, answer=read(resume.answer) if resume else None,
        state=read(resume.state) if resume else None,
    )


def _definition(tool):
    options = tool.options
    hints = abi.Hints(0)
    for name in ("read_only", "idempotent", "destructive", "open_world"):
        if options[name]:
            hints |= abi.Hints[name.upper()]
    checks = abi.Checks(0)
    for name in ("validate", "visible"):
        if options[name]:
            checks |= abi.Checks[name.upper()]
    # Without it the component's imports would be its needs, and those are the runtime's.
    extensions = [] if tool.needs else [("needs", "[]")]
    output = None if options["output"] is None else json.dumps(options["output"])
    return abi.Definition(
        name=tool.name, description=tool.description, parameters=json.dumps(tool.parameters), output=output,
        attributes=[(name, json.dumps(value)) for name, value in options["attributes"].items()], hints=hints, checks=checks,
        max_execution_ms=options["max_execution_ms"],
        needs=[abi.Need(need.kind, need.pattern, need.reason) for need in tool.needs], extensions=extensions,
    )


def _outcome(value):
    def optional(what, value):
        return None if value is None else _endings.written(what, value)

    if isinstance(value, _endings.Question):
        return abi.Outcome_AskUser(abi.Question(
            _endings.words(value.question), optional("options", value.options), optional("answer_schema", value.answer_schema),
            optional("state", value.state),
        ))
    if isinstance(value, _endings.Halt):
        return abi.Outcome_Halt(abi.Halt(_endings.words(value.reason), _endings.written("result", value.result)))
    if not isinstance(value, _endings.Output):
        value = _endings.Output(value)
    message = None if value.message is None else _endings.words(value.message)
    if isinstance(value.parts, str):
        raise TypeError("`parts` is a list of parts, not a text")
    parts = [_part(part) for part in value.parts]
    return abi.Outcome_Ok(abi.Output(_endings.written("result", value.value), message, parts, bool(value.end_turn), []))


def _part(part):
    """A text, or a dict: {"type": "text" | "image" | "audio" | "resource_link", …}."""
    if isinstance(part, str):
        return abi.Part_Text(_endings.words(part))
    kind = part.get("type")
    if kind in ("image", "audio"):
        media = abi.Media(part["mime_type"], bytes(part["data"]))
        return abi.Part_Image(media) if kind == "image" else abi.Part_Audio(media)
    if kind == "resource_link":
        return abi.Part_ResourceLink(abi.Link(part["uri"], part.get("name"), part.get("description"), part.get("mime_type")))
    if kind != "text":
        raise ValueError(f"the type of a part is text, image, audio or resource_link, not {kind!r}")
    return abi.Part_Text(_endings.words(part["text"]))


def _failure(failure):
    """A failure always leaves the tool: details that cannot be written become a remark in its message."""
    message, data = _endings.words(failure.message), None
    try:
        data = None if failure.data is None else _endings.as_json(failure.data)
    except ValueError as problem:
        message += f" (its details cannot be written as JSON: {problem})"
    return abi.Outcome_Error(abi.Failure(message, data, failure.retryable, failure.retry_after_ms))
