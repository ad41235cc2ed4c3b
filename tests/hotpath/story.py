"""Which files one allowed `tools/call` passes, from the socket of its caller to that of its server and back.

python -m tests.hotpath.story [--verbose]
"""

import asyncio
import socket
import sys
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NamedTuple

from tests.hotpath.hot_gate import post, running
from tests.waiting import PATIENCE

import agent_gate

ROOT = str(Path(agent_gate.__file__).parent) + "/"
ALLOW = "rules: [{pattern: '*', action: allow}]"


class Story(NamedTuple):
    """Every function in the order it was first entered in, as (file, function); taking up again is no step."""

    steps: list[tuple[str, str]]

    @property
    def functions(self) -> int:
        return len(set(self.steps))

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(file for file, _ in self.steps))

    @property
    def changes(self) -> int:
        """How often the next step is in another top folder."""
        tops = [file.split("/")[0] for file, _ in self.steps]
        return sum(a != b for a, b in pairwise(tops))


@contextmanager
def followed() -> Any:
    """What this thread does in the program meanwhile."""
    story, entered = Story([]), set[FrameType]()

    def note(frame: FrameType, event: str, _arg: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(ROOT) and frame not in entered:
            entered.add(frame)
            story.steps.append((file.removeprefix(ROOT), frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        yield story
    finally:
        sys.setprofile(None)


def exchange(line: socket.socket, data: bytes) -> bytes:
    line.sendall(data)
    reply = b""
    while b"\r\n\r\n" not in reply or not reply.endswith(b"}"):
        reply += line.recv(65536)
    return reply


async def one_call(folder: Path) -> Story:
    """Follow one call of a warm gateway; its caller and its server are in other threads.

    What some have in common, because chores of the gateway fall into any of them, and on a busy machine into all.
    """
    async with running(folder, ALLOW, aside=True) as (_gateway, _upstream, port):
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as line:
            stories = [await followed_call(line, number) for number in range(12)]
    return common(stories[4:])


def common(stories: list[Story]) -> Story:
    """The shortest, without the steps that others do not have."""
    kept = set.intersection(*(set(story.steps) for story in stories))
    shortest = min(stories, key=lambda story: len(story.steps))
    return Story([step for step in shortest.steps if step in kept])


async def followed_call(line: socket.socket, number: int) -> Story:
    with followed() as story:
        reply = await asyncio.to_thread(exchange, line, post("up__echo", {"text": "hi"}, number=number))
    assert b'"hi"' in reply
    return story


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        told = asyncio.run(one_call(Path(folder)))
    if "--verbose" in sys.argv:
        for file, function in told.steps:
            print(f"{file:45} {function}")
    print(f"{told.functions} functions, {len(told.files)} files, {told.changes} changes of top folder")
