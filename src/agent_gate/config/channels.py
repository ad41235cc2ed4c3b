"""The channels of config.yaml, and what people are known by on them: each kind brings its own keys."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from agent_gate.approval.channels.kind import ChannelSettings, PersonKey
from agent_gate.approval.channels.registry import CHANNELS
from agent_gate.config.decode import Reading, convert, decode
from agent_gate.config.doubts import warn_of_plain_http
from agent_gate.config.files.nodes import Mark, Node, entries, fail, items, join, read_each
from agent_gate.config.settings import Person, Settings
from agent_gate.config.shape import ADDRESS, shape
from agent_gate.core.ids import fold_namespace
from agent_gate.net.addresses import is_here


def read_channels(root: Node, reading: Reading) -> tuple[ChannelSettings, ...]:
    found = read_each(written_channels(root).items(), lambda path, node: read_channel(node, path, reading))
    names = [channel.name for channel in found.values()]
    for name in names:
        if names.count(name) > 1:
            mark = (root.get("channels") or root).mark
            fail(mark, "channels", f'two channels are called "{name}"; give them names')
    return tuple(found.values())


def written_channels(root: Node) -> dict[str, Node]:
    """`channels:` and the single `messenger:`, each by its path, in the order in which they are read."""
    single, several = root.get("messenger"), root.get("channels")
    found = {"messenger": single} if single else {}
    return found | {
        join("channels", i): node for i, node in enumerate(items(several, "channels") if several else [])
    }


def read_channel(node: Node, path: str, reading: Reading) -> ChannelSettings:
    """`{type: telegram, telegram: {...}}`, or the same keys directly beside `type`."""
    kind = node.get("type")
    if kind is None or kind.value not in CHANNELS:
        fail((kind or node).mark, join(path, "type"), f"expected {' or '.join(CHANNELS)}")
    merged, marks = {}, dict(node.keys)
    for key, item in entries(node, path).items():
        if key == kind.value:
            merged.update(entries(item, join(path, key)))
            marks.update(item.keys)
        elif key != "type":
            merged[key] = item
    channel: ChannelSettings = decode(
        Node(merged, node.mark, marks), CHANNELS[str(kind.value)].settings, path, reading
    )
    warn_of_open_secrets(channel, merged, path, reading)
    return channel


def warn_of_open_secrets(
    channel: ChannelSettings, found: Mapping[str, Node], path: str, reading: Reading
) -> None:
    fields = shape(type(channel))
    if any(each.secret and getattr(channel, each.name) for each in fields):
        for each in fields:
            if ADDRESS in each.notes and each.name in found:
                warn_of_plain_http(found[each.name], join(path, each.name), reading)


def read_people(root: Node, reading: Reading) -> dict[str, Person]:
    found = root.get("people")
    return read_each(
        entries(found, "people").items() if found else (),
        lambda name, node: read_person(node, name, join("people", name), reading),
    )


def person_keys() -> dict[str, PersonKey]:
    """What an entry of `people` may say beside what every person has."""
    return {name: kind.person_key for name, kind in CHANNELS.items() if kind.person_key is not None}


def read_person(node: Node, name: str, path: str, reading: Reading) -> Person:
    known_by = {
        kind: convert(item, key.type, join(path, kind), reading)
        for kind, key in person_keys().items()
        if (item := node.get(kind)) is not None and item.value is not None
    }
    person = decode(node, Person, path, reading, others=person_keys(), name=name, known_by=known_by)
    if person.namespaces is None:
        return person
    if person.role != "approver":
        fail(
            node.key_mark("namespaces"),
            join(path, "namespaces"),
            'narrows the answers of an "approver" alone',
        )
    return replace(person, namespaces=tuple(map(fold_namespace, person.namespaces)))


def doubt_channels(settings: Settings, places: Mapping[str, Mark]) -> Iterator[str]:
    """What the settings of channels can hardly mean; `places` is where each is written."""
    outside = urlsplit(settings.admin.public_url).hostname if settings.admin.public_url else None
    reachable = not is_here(outside or settings.admin.host)
    for channel, (path, mark) in zip(settings.channels, places.items(), strict=True):
        for doubt in CHANNELS[channel.type].doubts(channel, reachable):
            yield f"{mark}: {path}: {doubt}"
