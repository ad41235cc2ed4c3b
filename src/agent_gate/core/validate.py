"""The check that every call of a tool passes: a function that accepts arguments or says what is wrong with them."""

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import jsonschema_rs
import msgspec

from agent_gate.core.declared import Declared
from agent_gate.core.nested import first_slip
from agent_gate.core.schema import compile_schema
from agent_gate.core.signature import placeholders
from agent_gate.core.tool import Definition, Json, Tool, Validator
from agent_gate.errors import InvalidArgs

MAX_DEPTH = 64
MOST_EXAMINED = 1_000
MOST_UNDECLARED = 256
MOST_NAMED = 20
FORBIDDEN = frozenset("*?[](),") | {chr(c) for c in (*range(0x20), *range(0x7F, 0xA0))}
LONGEST_ADVICE = 300
WANTED = {
    "type": "be of type {}",
    "enum": "be one of {}",
    "const": "be {}",
    "pattern": "fit the pattern {}",
    "minimum": "be at least {}",
    "maximum": "be at most {}",
    "exclusiveMinimum": "be more than {}",
    "exclusiveMaximum": "be less than {}",
    "multipleOf": "be a multiple of {}",
    "minLength": "have at least {} characters",
    "maxLength": "have at most {} characters",
    "minItems": "have at least {} items",
    "maxItems": "have at most {} items",
}
FREE_TEXT = (
    "Leave it out, or have the argument declared with `text: true` in the tool's file, which takes free text"
)
PLAIN_TEXT = "Write the value without it"
UNSEEN = frozenset({"Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def describe(error: Any) -> str:
    """One sentence that names the argument and never repeats its value."""
    path = list(error.instance_path)
    kind = error.kind.name
    if kind == "required":
        return f"Missing required argument: {dotted([*path, error.kind.property])}"
    if kind == "additionalProperties":
        return f"Unknown argument: {dotted([*path, *error.kind.unexpected[:1]])}"
    return (
        f"Invalid value for {dotted(path)}"
        if path
        else "Invalid arguments: they do not fit the tool's schema"
    )


def also_missing(errors: Sequence[Any]) -> str:
    """The further arguments that are missing, on a line of their own."""
    missing = [dotted([*e.instance_path, e.kind.property]) for e in errors if e.kind.name == "required"]
    return f"\nAlso missing: {', '.join(missing[1:MOST_NAMED])}" if len(missing) > 1 else ""


def advice(error: Any, patterns: Mapping[str, str]) -> str:
    """What the schema wants instead, on a line of its own; nothing where a few words cannot say it.

    A pattern is shown as its file has it.
    """
    wants = WANTED.get(error.kind.name)
    if wants is None:
        return ""
    value = error.kind.value
    if error.kind.name == "pattern":
        value = patterns.get(dotted(list(error.instance_path)), value)
    shown = value if isinstance(value, list) and error.kind.name in ("type", "enum") else [value]
    words = ", ".join(one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in shown)
    return "\nIt must " + wants.format(
        words if len(words) <= LONGEST_ADVICE else f"{words[:LONGEST_ADVICE]}…"
    )


def dotted(path: list[Any]) -> str:
    return ".".join(str(part)[:64] for part in path)


def forbidden_argument(arguments: Mapping[str, Json], text: frozenset[str]) -> str | None:
    """The first argument, not declared as text, that holds a pattern or control character anywhere inside."""
    for name, value in arguments.items():
        if name not in text and holds_forbidden(value, 0):
            return name
    return None


def unseen_argument(arguments: Mapping[str, Json], signed: frozenset[str]) -> str | None:
    """The first argument of the signature whose text is not what it looks like: invisible or decomposed characters."""
    for name in signed:
        value = arguments.get(name)
        if isinstance(value, str) and not value.isascii() and not plainly_written(value):
            return name
    return None


def plainly_written(value: str) -> bool:
    return unicodedata.is_normalized("NFC", value) and not any(
        unicodedata.category(character) in UNSEEN for character in value
    )


def holds_forbidden(value: Json, depth: int) -> bool:
    if depth > MAX_DEPTH:
        return True
    if isinstance(value, str):
        return not FORBIDDEN.isdisjoint(value)
    if isinstance(value, Mapping):
        return any(holds_forbidden(k, depth) or holds_forbidden(v, depth + 1) for k, v in value.items())
    return isinstance(value, list) and any(holds_forbidden(item, depth + 1) for item in value)


def forbidden(name: str, character: str, cure: str) -> InvalidArgs:
    """The refusal in its exact words, and on a second line what it is about and what helps."""
    plain = character.isprintable() and not unicodedata.combining(character or " ")
    shown = character if plain else f"U+{ord(character):04X}"
    about = f'\nIt has "{shown}" in it. {cure}' if character else ""
    return InvalidArgs(f"Argument '{name[:64]}' contains forbidden characters{about}")


def forbidden_character(value: Json) -> str:
    """The first that is a pattern or control character, wherever it stands; empty where only the depth is wrong."""
    if isinstance(value, str):
        return next((one for one in value if one in FORBIDDEN), "")
    if isinstance(value, Mapping):
        value = [part for pair in value.items() for part in pair]
    return next(filter(None, map(forbidden_character, value)), "") if isinstance(value, list) else ""


def unseen_character(value: str) -> str:
    """The first that is invisible, or is written otherwise than it looks."""
    unseen = (one for one in value if not one.isprintable() or unicodedata.combining(one))
    return next(unseen, "")


def found_errors(compiled: Any, arguments: Mapping[str, Json]) -> list[Any]:
    """What is wrong with the arguments, the missing ones first. Of very many values only the first fault is sought:
    a fault is much larger than the value it is about, and they are all made before the first can be read."""
    if has_more_values(arguments, MOST_EXAMINED):
        try:
            compiled.validate(arguments)
        except jsonschema_rs.ValidationError as error:
            return [error]
    return sorted(
        compiled.iter_errors(arguments),
        key=lambda e: (e.kind.name != "required", list(map(str, e.instance_path))),
    )


def has_more_values(value: Json, most: int) -> bool:
    count, stack = 0, [value]
    while stack:
        inner = stack.pop()
        items = inner.values() if isinstance(inner, Mapping) else inner if isinstance(inner, list) else ()
        count += len(items)
        if count > most:
            return True
        stack.extend(items)
    return False


def check_number(undeclared: Collection[str]) -> None:
    """Refuse what nobody could look through, and no rule was written for."""
    if len(undeclared) > MOST_UNDECLARED:
        raise InvalidArgs(
            f"The call has {len(undeclared)} arguments that the tool does not declare, "
            f"such as {min(undeclared)[:64]}; at most {MOST_UNDECLARED} are taken"
        )


def unknown_arguments(tool: Tool, arguments: Mapping[str, Json]) -> Sequence[str]:
    """Arguments that a server's tool does not declare, which are likely slips.

    One whose schema invites more by a schema of its own, or names nothing, takes what it is given; so does one
    declared in YAML that takes other arguments.
    """
    declared = tool.declared
    if arguments.keys() <= declared.names or tool.definition.declared is not None:
        return ()
    return () if declared.invites or not declared.names else tuple(sorted(declared.others(arguments)))


def check_known(tool: Tool, arguments: Mapping[str, Json]) -> None:
    """Refuse an unknown argument, also inside of one, for callers who cannot see the tool's schema."""
    if unknown := unknown_arguments(tool, arguments):
        raise unknown_argument(unknown[:1], tool.declared.names)
    if tool.definition.declared is None and (slip := first_slip(tool.definition.input_schema, arguments)):
        beside = slip.path[0] if slip.path[-1] in tool.declared.names else ""
        raise unknown_argument(slip.path, slip.known, beside)


def unknown_argument(path: Sequence[str], known: Collection[str], beside: str = "") -> InvalidArgs:
    """The refusal, with the name that was likely meant; `beside` is the argument that it belongs next to."""
    names = sorted(known)
    near = folded_alike(path[-1], names) or get_close_matches(path[-1][:64], names, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    hint = f"Did you mean it beside {beside[:64]}? " if beside else hint
    return InvalidArgs(
        f"Unknown argument: {dotted(list(path))}\n{hint}It takes {', '.join(names[:MOST_NAMED])}"
    )


def folded_alike(name: str, known: Collection[str]) -> list[str]:
    """Names that differ in case and signs alone, as `dry_run` and `dryRun` do."""
    return [one for one in known if folded(one) == folded(name)]


def folded(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()


def compile_validator(definition: Definition, declared: Declared) -> Validator:
    """The check every call of this tool passes, in the order its messages promise: characters, then schema."""
    compiled = compile_schema(definition.input_schema)
    is_valid = compiled.is_valid
    strict, text = definition.strict, definition.text
    signed = frozenset(placeholders(definition.template or ""))

    def validate(arguments: Mapping[str, Json]) -> None:
        if len(arguments) > MOST_UNDECLARED:
            check_number(declared.others(arguments))
        if strict and (name := forbidden_argument(arguments, text)) is not None:
            raise forbidden(name, forbidden_character(arguments[name]), FREE_TEXT)
        if signed and (name := unseen_argument(arguments, signed)) is not None:
            raise forbidden(name, unseen_character(str(arguments[name])), PLAIN_TEXT)
        if not is_valid(arguments):
            errors = found_errors(compiled, arguments)
            more = also_missing(errors) or advice(errors[0], definition.patterns)
            raise InvalidArgs(
                describe(errors[0]) + more, details={"errors": [describe(e) for e in errors[:5]]}
            )

    return validate
