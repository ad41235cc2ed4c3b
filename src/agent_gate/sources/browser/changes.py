"""What an action changed on a page, in a few lines. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

from agent_gate.sources.browser.trim import Item

MOST_CHARACTERS = 2_000
MOST_GONE = 5


def flat(items: Sequence[Item]) -> Iterator[Item]:
    waiting = list(reversed(items))
    while waiting:
        item = waiting.pop()
        yield item
        waiting.extend(reversed(item.children))


def changes(before: Sequence[Item], after: Sequence[Item]) -> str | None:
    """The lines that are new or different, and what went; None where so much changed that a whole look says it better."""
    was, now = [item.line() for item in flat(before)], [item.line() for item in flat(after)]
    old = Counter(was)
    new: list[str] = []
    for line in now:
        if old[line] > 0:
            old[line] -= 1
        else:
            new.append(line)
    if len(new) > 8 and len(new) * 2 > len(now):
        return None
    refs = {ref for item in flat(after) for ref in item.refs()}
    gone = [
        item
        for item in flat(before)
        if item.line() in old and old[item.line()] > 0 and (not item.ref or item.ref not in refs)
    ]
    lines = [f"+ {line}" for line in new]
    if gone:
        shown = ", ".join(f'"{item.first_name()[:40]}"' for item in gone[:MOST_GONE] if item.first_name())
        lines.append(f"- gone: {len(gone)} lines{f', such as {shown}' if shown else ''}")
    text = "\n".join(lines)
    return text if len(text) <= MOST_CHARACTERS else None
