"""A block of servers pasted from a client's JSON file as it was, so that YAML can read it where it stands.

JSON is YAML once it is indented below its key and has no tabs and no remarks; lines keep their numbers, so errors
keep their places.
"""

import re

KEY = re.compile(r"(?:mcpServers|servers):[ \t]*(?:#.*)?")
WHOLE = re.compile(r'[ \t]*(?:\{\s*)?"mcpServers"[ \t]*:')
ENDS = re.compile(r"[A-Za-z_][\w-]*[ \t]*:|---|\.\.\.")
REMARK = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def straighten(text: str) -> str | None:
    """The text with its pasted blocks as YAML takes them; None where there is none."""
    lines = text.split("\n")
    found, at = False, 0
    while at < len(lines):
        keyed = KEY.fullmatch(lines[at].rstrip("\r")) is not None
        if not keyed and not WHOLE.match("\n".join(lines[at : at + 2])):
            at += 1
            continue
        end = next((n for n in range(at + 1, len(lines)) if ENDS.match(lines[n])), len(lines))
        found |= straighten_below(lines, at, end) if keyed else straighten_whole(lines, at, end)
        at = end
    return "\n".join(lines) if found else None


def straighten_below(lines: list[str], key: int, end: int) -> bool:
    """Whether the lines below a key were JSON, whole or some of its members, which they are now indented for."""
    block = plain_json(lines[key + 1 : end])
    filled = [n for n, line in enumerate(block) if line.strip() and not line.lstrip().startswith("#")]
    if not filled or block[filled[0]].lstrip()[0] not in '{"':
        return False
    if block[filled[0]].lstrip()[0] == '"':
        block[filled[0]] = " {" + block[filled[0]][2:]
        block[filled[-1]] += "}"
    lines[key + 1 : end] = block
    return True


def straighten_whole(lines: list[str], start: int, end: int) -> bool:
    """A client's whole file, or its one member, that stands where our own keys do: it is given its key."""
    block = plain_json(lines[start:end])
    block[0] = block[0].lstrip()
    if block[0].startswith("{"):
        block[0] = f"mcpServers: {block[0]}"
    lines[start:end] = block
    return True


def plain_json(lines: list[str]) -> list[str]:
    """The lines without remarks, tabs and a comma behind the last of them, one step further in."""
    text = REMARK.sub(lambda found: found[0] if found[0][0] == '"' else blank(found[0]), "\n".join(lines))
    block = ["  " + line.replace("\t", "  ") if line.strip() else line for line in text.split("\n")]
    last = max((n for n, line in enumerate(block) if line.strip(" \r")), default=None)
    if last is not None:
        block[last] = block[last].rstrip().removesuffix(",")
    return block


def blank(remark: str) -> str:
    return "\n" * remark.count("\n")
