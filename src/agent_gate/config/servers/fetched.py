"""What the command of a server would download: packages of a launcher such as npx, and the image of a container."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PureWindowsPath

LAUNCHERS = (
    ("npx",),
    ("bunx",),
    ("uvx",),
    ("pnpx",),
    ("npm", "exec"),
    ("npm", "x"),
    ("pnpm", "dlx"),
    ("yarn", "dlx"),
    ("bun", "x"),
    ("uv", "tool", "run"),
    ("pipx", "run"),
)
ENGINES = frozenset({"docker", "podman"})
WRAPPERS = frozenset({"env", "sudo", "nice", "cmd"})
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ash"})
PACKAGE_FLAGS = frozenset({"--package", "-p", "--from"})
WITH = "--with"
ASSIGNED = re.compile(r"\w+=.*", re.DOTALL)
COMMANDS = re.compile(r"-[a-z]*c")
SWITCHES = frozenset(
    [
        "--detach",
        "--disable-content-trust",
        "--env-host",
        "--help",
        "--init",
        "--interactive",
        "--no-healthcheck",
        "--no-hosts",
        "--oom-kill-disable",
        "--privileged",
        "--publish-all",
        "--quiet",
        "--read-only",
        "--replace",
        "--rm",
        "--rmi",
        "--sig-proxy",
        "--tty",
        "--use-api-socket",
    ]
)
"""Options of `docker run` and `podman run` that take no value."""
SHORT_SWITCHES = re.compile("-[itdPq]+")
EXACT = re.compile(r"(?:@[^@/]+/)?[^@/=<>~!]+@v?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?")
EXACT_PYTHON = re.compile(r"[^@/=<>~!]+(?:@|==)v?\d[0-9A-Za-z.+!-]*")
"""A package with one version, and no range or tag that moves: `pkg@1` is one version for Python, and a range for npm."""
PYTHON = frozenset({"uv", "uvx", "pipx"})
PACKAGE, IMAGE = "PACKAGE@VERSION, with one exact version", "NAME:VERSION or NAME@sha256:…"


@dataclass(frozen=True, slots=True)
class Moving:
    """Something that is fetched in whatever version is the newest, by which program, and how to write it instead."""

    program: str
    what: str
    write: str


def moving(command: str, args: Sequence[str]) -> Moving | None:
    """The first thing without one fixed version that starting the command fetches; None where there is none."""
    for words in commands([command, *args]):
        name = program(words[0])
        if name in ENGINES:
            image = run_image(words[1:])
            if image is not None and not fixed_image(image):
                return Moving(words[0], image, IMAGE)
        exact = EXACT_PYTHON if name in PYTHON else EXACT
        for package in packages(name, words[1:]):
            if not exact.fullmatch(package):
                return Moving(words[0], package, PACKAGE)
    return None


def program(word: str) -> str:
    """The name of a program, without its folder and what Windows has behind it."""
    name = PureWindowsPath(word).name
    return name.lower().removesuffix(".exe").removesuffix(".cmd")


def commands(words: list[str]) -> Iterator[list[str]]:
    """The command itself, those that a program starts which only wraps it, and the words of a shell from each on."""
    while words and program(words[0]) in WRAPPERS:
        words = words[1:]
        while words and (words[0].startswith(("-", "/")) or ASSIGNED.fullmatch(words[0])):
            words = words[1:]
    if not words:
        return
    yield words
    at = next((n for n, word in enumerate(words) if COMMANDS.fullmatch(word)), None)
    if program(words[0]) in SHELLS and at is not None and len(words) > at + 1:
        line = shell_words(words[at + 1])
        yield from (line[n:] for n in range(len(line)))


def shell_words(line: str) -> list[str]:
    try:
        return list(shlex.shlex(line, posix=True, punctuation_chars=True))
    except ValueError:
        return line.split()


def packages(name: str, args: Sequence[str]) -> Iterator[str]:
    """Everything that a launcher downloads."""
    for words in LAUNCHERS:
        if name == words[0] and tuple(args[: len(words) - 1]) == words[1:]:
            package = named_package(args[len(words) - 1 :])
            yield from [package] if package else []
    if name in ("uv", "uvx"):
        yield from filter(None, map(from_registry, beside(args)))
    if name == "deno":
        yield from (word.partition(":")[2] for word in args if word.startswith(("npm:", "jsr:")))


def named_package(args: Sequence[str]) -> str | None:
    """The package that is run: what an option names, else the first word that is neither an option nor its value."""
    words = iter(args)
    for word in words:
        flag, _, value = word.partition("=")
        if flag in PACKAGE_FLAGS:
            return from_registry(value or next(words, ""))
        if flag == WITH and not value:
            next(words, None)
        elif not word.startswith("-"):
            return from_registry(word)
    return None


def from_registry(package: str) -> str | None:
    return None if package.startswith((".", "/")) else package or None


def beside(args: Sequence[str]) -> Iterator[str]:
    """What `--with` adds to a launcher's package."""
    for at, arg in enumerate(args):
        flag, _, value = arg.partition("=")
        if flag == WITH:
            yield from (value or "".join(args[at + 1 : at + 2])).split(",")


def run_image(args: Sequence[str]) -> str | None:
    """The image of `docker run`: the first word that is neither an option nor the value of one."""
    words = iter(args[args.index("run") + 1 :] if "run" in args else ())
    for word in words:
        if not word.startswith("-"):
            return word
        alone = "=" in word or word in SWITCHES or SHORT_SWITCHES.fullmatch(word)
        attached = not word.startswith("--") and len(word) > 2
        if not alone and not attached:
            next(words, None)
    return None


def fixed_image(image: str) -> bool:
    """Whether an image names a version: a digest, or a tag other than the one that moves."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return "@sha256:" in image or tag not in ("", "latest")
