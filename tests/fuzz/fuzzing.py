"""A small fuzzer guided by coverage: inputs that take a new step are kept and mutated further.

A target is a module in `targets/` with a `TARGET`. Its seeds are the files in `corpus/NAME/`, one input
each. An input that breaks the target is made smaller and written there as `finding-HASH`, so that every
later run begins with it.
"""

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from random import Random
from types import FrameType

from tests.fuzz.mutating import mutate_bytes

import agent_gate

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
GROWN = HERE.parents[1] / ".cache" / "fuzz"
PROGRAM = str(Path(agent_gate.__file__).parent)
LONGEST = 64 * 1024

Mutate = Callable[[bytes, Random, "list[bytes]", "tuple[bytes, ...]"], bytes]
Steps = set[tuple[str, int, int]]


@dataclass(frozen=True, slots=True)
class Target:
    """`run` raises on an input that breaks a promise; `words` are pieces that such inputs are made of."""

    name: str
    run: Callable[[bytes], object]
    words: tuple[bytes, ...] = ()
    mutate: Mutate = mutate_bytes


class FindingError(AssertionError):
    """An input that breaks its target, kept in the corpus."""


def targets() -> list[Target]:
    names = sorted(path.stem for path in (HERE / "targets").glob("*.py") if path.stem != "__init__")
    return [import_module(f"fuzz.targets.{name}").TARGET for name in names]


def seeds(target: Target) -> list[bytes]:
    """What is committed: each an input that once took a step of its own, or broke the target."""
    return _inputs(CORPUS / target.name)


def search(target: Target, seconds: float) -> int:
    """Look for inputs that break the target, other ones each time; the number tried.

    Begins with the corpus and with what earlier runs on this machine found worth keeping.
    """
    deadline = time.monotonic() + seconds
    known = seeds(target) + _inputs(GROWN / target.name)
    return _grow(
        target,
        known,
        Random(),
        lambda _tried: time.monotonic() < deadline,
        lambda data: _keep(GROWN, target, data),
    )


def repeat(target: Target, inputs: int) -> int:
    """Try the corpus and so many mutations of it, the same ones on every machine; the number tried."""
    known = seeds(target)
    return _grow(target, known, Random(0), lambda tried: tried < len(known) + inputs, lambda _data: None)


def _inputs(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.iterdir())] if folder.exists() else []


def _grow(
    target: Target,
    known: list[bytes],
    random: Random,
    goes_on: Callable[[int], bool],
    keep: Callable[[bytes], object],
) -> int:
    corpus, reached, tried = known or [b""], Steps(), 0
    for data in corpus:
        reached |= _attempt(target, data)
        tried += 1
    while goes_on(tried):
        data = target.mutate(random.choice(corpus), random, corpus, target.words)[:LONGEST]
        steps = _attempt(target, data)
        tried += 1
        if not steps <= reached:
            reached |= steps
            corpus.append(data)
            keep(data)
    return tried


def _attempt(target: Target, data: bytes) -> Steps:
    steps = Steps()
    try:
        with traced(steps):
            target.run(data)
    except Exception as error:
        place = where(error)
        small = smaller(data, lambda piece: failure(target, piece) == place)
        path = _keep(CORPUS, target, small, "finding-")
        raise FindingError(f"{target.name} breaks on {path}: {small[:200]!r}") from error
    return steps


def failure(target: Target, data: bytes) -> str | None:
    try:
        target.run(data)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
        return where(error)
    return None


def where(error: Exception) -> str:
    """The kind of an error and the line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {last.filename}:{last.lineno}"


def smaller(data: bytes, broken: Callable[[bytes], bool], seconds: float = 10.0) -> bytes:
    """The input with every piece left out that it breaks without."""
    deadline, size = time.monotonic() + seconds, max(1, len(data) // 2)
    while size and time.monotonic() < deadline:
        at, before = 0, len(data)
        while at < len(data) and time.monotonic() < deadline:
            shorter = data[:at] + data[at + size :]
            if broken(shorter):
                data = shorter
            else:
                at += size
        if len(data) == before:
            size //= 2
    return data


def _keep(folder: Path, target: Target, data: bytes, prefix: str = "") -> Path:
    path = folder / target.name / f"{prefix}{sha256(data).hexdigest()[:16]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@contextmanager
def traced(steps: Steps) -> Iterator[None]:
    """Note every step from one line of the program to the next."""

    last = 0

    def on_line(frame: FrameType, event: str, _value: object) -> object:
        nonlocal last
        if event == "line":
            steps.add((frame.f_code.co_filename, last, frame.f_lineno))
            last = frame.f_lineno
        return on_line

    def on_call(frame: FrameType, _event: str, _value: object) -> object:
        return on_line if frame.f_code.co_filename.startswith(PROGRAM) else None

    sys.settrace(on_call)  # type: ignore[arg-type]
    try:
        yield
    finally:
        sys.settrace(None)
