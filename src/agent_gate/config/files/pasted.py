"""A block of servers pasted from a client's JSON file as it was, so that YAML can read it where it stands.

JSON is YAML once it is indented below its key and has no tabs; lines keep their numbers, so errors keep their places.
"""

import re

KEY = re.compile(r"(?:mcpServers|servers):[ \t]*(?:#.*)?")
ENDS = re.compile(r"[A-Za-z_][\w-]*[ \t]*:|---|\.\.\.")


def straighten(text: str) -> str | None:
    """The text with its pasted blocks as YAML takes them; None where there is none."""
    lines = text.split("\n")
    found = False
    for at, line in enumerate(lines):
        if KEY.fullmatch(line.rstrip("\r")):
            end = next((n for n in range(at + 1, len(lines)) if ENDS.match(lines[n])), len(lines))
            found |= straighten_block(lines, at, end)
    return "\n".join(lines) if found else None


def straighten_block(lines: list[str], key: int, end: int) -> bool:
    """Whether the lines below a key were JSON, whole or some of its members, which they are now indented for."""
    filled = [n for n in range(key + 1, end) if lines[n].strip() and not lines[n].lstrip().startswith("#")]
    if not filled or lines[filled[0]].lstrip()[0] not in '{"':
        return False
    members = lines[filled[0]].lstrip()[0] == '"'
    for n in filled:
        lines[n] = "  " + lines[n].replace("\t", "  ")
    last = filled[-1]
    lines[last] = lines[last].rstrip().removesuffix(",")
    if members:
        lines[filled[0]] = " {" + lines[filled[0]][2:]
        lines[last] += "}"
    return True
