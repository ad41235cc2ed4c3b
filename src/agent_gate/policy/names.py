"""The names by which a pattern can mean a tool, and the arguments that a pattern names."""

import re
from collections.abc import Iterable, Iterator

from agent_gate.core.catalog import aliases, wire_part
from agent_gate.core.signature import safe_key
from agent_gate.core.tool import Tool
from agent_gate.policy.globs import compile_glob

WILD = re.compile(r"[*?\[]")
PLAIN = re.compile(r"[A-Za-z0-9_*?]*")
SIGNS = re.compile(r"[^A-Za-z0-9_*?]")
READS = ("resources/read", "prompts/get")
BEFORE_KEY = re.compile(r"\(|, ")


def head(pattern: str) -> str:
    """The literal text before the first wildcard."""
    return WILD.split(pattern, maxsplit=1)[0]


def name_part(pattern: str) -> str:
    return pattern.partition("(")[0]


def names(pattern: str, tool: Tool, *, allows: bool = False) -> tuple[str, ...]:
    """The names of a tool that a pattern can mean, its name on the wire first.

    A name that was cut or made unique, the server's own spelling, and an alias that another tool might have too still
    refuse, but never allow.
    """
    if allows:
        return (tool.wire, tool.alias) if ":" in name_part(pattern) else (tool.wire,)
    written = name_part(pattern)
    return (tool.wire, *(name for name in spellings(tool) if tells_apart(written, name, tool)))


def spellings(tool: Tool) -> Iterable[str]:
    """Every other name that somebody could write for a tool, who has its server's documentation at hand."""
    found = dict.fromkeys(filter(None, (tool.full_wire, *aliases(tool))))
    if not tool.definition.flat and tool.source:
        found |= dict.fromkeys(server_spellings(tool))
    found.pop(tool.wire, None)
    return found


def server_spellings(tool: Tool) -> Iterator[str]:
    """With the source and the tool each as the file and the server write them, or as the wire or an id does."""
    servers = tool.definition.own or tool.upstream
    own = dict.fromkeys((tool.upstream, tool.name, servers, wire_part(servers)))
    if (tool.full_wire or tool.wire) == wire_part(tool.upstream):
        yield from own
    for key in dict.fromkeys((tool.source, wire_part(tool.source), tool.namespace)):
        for name in own:
            yield f"{key}__{name}"
            yield f"{key}:{name}"


def tells_apart(written: str, name: str, tool: Tool) -> bool:
    """Whether a pattern could mean this name and not the one on the wire: one of letters and wildcards cannot, where
    nothing but signs differs. A colon is written by who means an alias."""
    if ":" in name:
        return ":" in written
    folded = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return not PLAIN.fullmatch(written) or folded not in (tool.wire, tool.full_wire) or name == tool.full_wire


def may_match(pattern: str, tool: Tool, *, allows: bool = False) -> bool:
    """Whether some call of this tool could match; false only when the name alone rules it out."""
    return any(may_mean(pattern, name) for name in names(pattern, tool, allows=allows))


def may_mean(pattern: str, name: str) -> bool:
    start = head(pattern)
    if start == pattern:
        return pattern == name or pattern.startswith(f"{name}(")
    return f"{name}(".startswith(start) or start.startswith(f"{name}(")


def listed_spelling(pattern: str) -> str | None:
    """The pattern with its name as a tool of a server would be listed; None where it is one already.

    No name on the wire has other signs than `_`, but those of reads; an id's may have dots and dashes.
    """
    written, rest = name_part(pattern), pattern[len(name_part(pattern)) :]
    if ":" in written or "[" in written or written.endswith(READS) or SIGNS.search(written) is None:
        return None
    return SIGNS.sub("_", written) + rest


def named_arguments(pattern: str) -> tuple[str, ...]:
    """The arguments that a pattern spells, as globs: `x(path=/srv/*, b*=1)` names `path` and `b*`.

    What stands between a wildcard and `=` is the end of a name, and is taken for the whole of it.
    """
    found = []
    for piece in pattern.split("=")[:-1]:
        *before, last = BEFORE_KEY.split(piece)
        found.append(last.lstrip("*") if before else WILD.split(last)[-1])
    return tuple(dict.fromkeys(found))


def is_named(argument: str, globs: Iterable[str]) -> bool:
    written = safe_key(argument)
    return any(compile_glob(one)(written) for one in globs)
