"""A page's whole tree as text, for `full`; also the measure of what trimming saves. Pure."""

from agent_gate.sources.browser.tree import PageNode
from agent_gate.sources.browser.trim.item import AS_TEXT


def measure(root: PageNode) -> int:
    """The characters of a page's tree as Playwright has it, without the elements that only we find."""
    return len(whole(root, found=False))


def whole(root: PageNode, *, found: bool = True) -> str:
    lines: list[str] = []
    waiting = [(node, 0) for node in reversed(root.children)]
    while waiting:
        node, depth = waiting.pop()
        if node.details.backend and not found:
            continue
        lines.append(f"{'  ' * depth}- {line(node)}")
        if node.url:
            url = node.details.href or node.url if found else node.url
            lines.append(f"{'  ' * (depth + 1)}- /url: {url}")
        waiting.extend((child, depth + 1) for child in reversed(node.children))
    return "\n".join(lines)


def line(node: PageNode) -> str:
    if node.role == "text":
        return f"text: {node.text.translate(AS_TEXT)}"
    parts = [node.role]
    if node.name:
        parts.append(f'"{node.name.translate(AS_TEXT)}"')
    parts += [f"[{name}]" if value is True else f"[{name}={value}]" for name, value in node.states.items()]
    if node.level:
        parts.append(f"[level={node.level}]")
    if node.ref:
        parts.append(f"[ref={node.ref}]")
    if node.pointer:
        parts.append("[cursor=pointer]")
    text = " ".join(parts)
    return f"{text}: {node.text.translate(AS_TEXT)}" if node.text else text
