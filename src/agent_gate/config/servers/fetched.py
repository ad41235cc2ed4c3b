"""What the command of a server would download: packages of a launcher such as npx, and the image of a container."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import PureWindowsPath

ENGINES = frozenset({"docker", "nerdctl", "podman"})
WRAPPERS = frozenset({"cmd", "env", "exec", "nice", "nohup", "setsid", "stdbuf", "sudo", "timeout"})
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ash"})
COMMANDS = re.compile(r"-[a-z]*c")
OPERATORS = frozenset({"&&", "||", ";", "|", "&"})
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
LOCAL = (".", "/", "~/", "path:", "file:", "git+file:")
COMMIT = re.compile(r".+[@#/=][0-9a-f]{40}(?:[^0-9a-f].*)?")
"""An address with a whole commit in it, as `git+https://…@COMMIT` or `github:owner/repo/COMMIT`."""
NUMBERS = r"v?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?"
PACKAGE = rf"(?:@[^@/]+/)?[^@/=<>~!]+@{NUMBERS}"
REMOTE = rf"(?:npm:|jsr:)/?{PACKAGE}(?:/.*)?|https?://.+@{NUMBERS}(?:/.*)?"
IMAGE = "NAME:VERSION or NAME@sha256:…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """How launchers name what they fetch, and what is one fixed version of it, no range or tag that moves.

    Fetched is what the options `named` say, else the first word (with `many` each word, without `bare` none) that is
    neither an option nor the value of one (`valued`: of how many words); and what the options `beside` add.
    """

    exact: re.Pattern[str]
    write: str
    named: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    valued: Mapping[str, int] = field(default_factory=dict)
    ends: frozenset[str] = OPERATORS
    many: bool = False
    bare: bool = True

    def fixes(self, what: str) -> bool:
        """Whether it is the same at every start, as what lies on this machine is."""
        return what.startswith(LOCAL) or any(form.fullmatch(what) for form in (self.exact, COMMIT))

    def fetched(self, args: Sequence[str]) -> Iterator[str]:
        said: list[str] = []
        words: list[str] = []
        for option, value in self.parsed(args):
            if option in self.beside:
                yield from value.split(",")
            elif option in self.named:
                said.append(value)
            elif not option and self.bare:
                words.append(value)
                if not self.many:
                    break
        yield from said or words

    def parsed(self, args: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Each option with its value, and each other word without an option."""
        words = iter(args)
        for word in words:
            option, given, value = word.partition("=")
            if option in self.ends:
                return
            if word.startswith("-"):
                count = self.valued.get(option, int(option in self.named | self.beside))
                yield option, value if given else " ".join(islice(words, count))
            else:
                yield "", word


def valued(options: str, count: int = 1) -> dict[str, int]:
    return dict.fromkeys(options.split(), count)


NPM = Registry(
    exact=re.compile(PACKAGE),
    write="PACKAGE@VERSION, with one exact version",
    named=frozenset({"--package", "-p"}),
    valued=valued(
        "--cache --call -c --node-options --prefix --registry --source --userconfig --workspace -w"
    ),
)
PYTHON = Registry(
    exact=re.compile(r"[^@/=<>~!]+(?:@|==)v?\d[0-9A-Za-z.+!-]*"),
    write="PACKAGE==VERSION",
    named=frozenset({"--from", "--spec"}),
    beside=frozenset({"--with"}),
    valued=valued(
        "--python -p --index --default-index --index-url -i --extra-index-url --find-links -f --directory --project"
        " --cache-dir --config-file --env-file --pip-args --constraint -c --requirement -r --editable -e --target -t"
    ),
)
DENO = Registry(
    exact=re.compile(rf"{REMOTE}|(?!npm:|jsr:|https?:).*"),
    write="npm:PACKAGE@VERSION, jsr:PACKAGE@VERSION or an address with @VERSION, with one exact version",
    valued=valued(
        "--config -c --import-map --cert --location --seed --ext --preload --import --require --log-level -L --conditions"
    ),
)
GO = Registry(
    exact=re.compile(rf"[^@]+(?:@{NUMBERS})?"),
    write="MODULE@vX.Y.Z",
    valued=valued(
        "-C -p -asmflags -buildmode -compiler -covermode -coverpkg -exec -gccgoflags -gcflags -installsuffix -ldflags"
        " -mod -modfile -overlay -pgo -pkgdir -tags -toolexec"
    ),
)
NIX = Registry(
    exact=re.compile(r".+[?&]narHash=.+"),
    write="github:OWNER/REPO/COMMIT#NAME",
    valued=valued(
        "--extra-experimental-features --experimental-features --inputs-from --profile --store --eval-store --system"
        " --include -I --max-jobs -j --cores --log-format --keep-env-var -k --unset-env-var -u"
    )
    | valued("--option --arg --argstr --override-input --override-flake --set-env-var -s", 2),
    ends=OPERATORS | {"--command", "-c", "--"},
)
INSTALLED, REQUIRED = replace(NPM, named=frozenset(), many=True), replace(PYTHON, many=True)
REGISTRIES: Sequence[tuple[Registry, Sequence[str]]] = (
    (NPM, ("npx", "bunx", "pnpx", "npm exec", "npm x", "pnpm dlx", "yarn dlx", "bun x")),
    (NPM, ("dnx", "dotnet tool exec")),
    (INSTALLED, ("npm install", "npm i", "cargo install", "cargo binstall", "cargo-binstall")),
    (PYTHON, ("uvx", "uv tool run", "pipx run")),
    (replace(PYTHON, bare=False), ("uv run",)),
    (
        REQUIRED,
        ("pip install", "pip3 install", "uv pip install", "python -m pip install", "python3 -m pip install"),
    ),
    (DENO, ("deno", "deno run", "deno serve")),
    (replace(DENO, exact=re.compile(f"{REMOTE}|{PACKAGE}")), ("deno x", "dx")),
    (GO, ("go run", "go install")),
    (NIX, ("nix run", "nix develop")),
    (replace(NIX, many=True), ("nix shell",)),
)


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
        image = run_image(words[1:]) if name in ENGINES else None
        if image is not None and not fixed_image(image):
            return Moving(words[0], image, IMAGE)
        for registry, what in packages(name, words[1:]):
            if what and not registry.fixes(what):
                return Moving(words[0], what, registry.write)
    return None


def program(word: str) -> str:
    """The name of a program, without its folder and what Windows has behind it."""
    name = PureWindowsPath(word).name
    return name.lower().removesuffix(".exe").removesuffix(".cmd")


def commands(words: list[str]) -> Iterator[list[str]]:
    """The command itself, what it could be of those that wrap one and behind a `--`, and the words of a shell."""
    wrapped = program(words[0]) in WRAPPERS
    for at in range(len(words)):
        if at == 0 or wrapped or words[at - 1] == "--":
            yield words[at:]
            yield from shell_commands(words[at:])


def shell_commands(words: list[str]) -> Iterator[list[str]]:
    """The words of a shell's line, from each on."""
    at = next((n for n, word in enumerate(words) if COMMANDS.fullmatch(word)), None)
    if program(words[0]) in SHELLS and at is not None and len(words) > at + 1:
        line = shell_words(words[at + 1])
        yield from (line[n:] for n in range(len(line)))


def shell_words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return line.split()


def packages(name: str, args: Sequence[str]) -> Iterator[tuple[Registry, str]]:
    """Everything that a launcher downloads."""
    for registry, launchers in REGISTRIES:
        for first, *verbs in map(str.split, launchers):
            before, after = split_at(args, verbs) if name == first else ((), ())
            yield from ((registry, what) for what in registry.fetched([*before, *after]))


def split_at(args: Sequence[str], verbs: list[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What stands before and after the verbs of a program; nothing where it is told others. Before them there are
    options alone, each with at most one value."""
    for at, word in enumerate(args):
        if list(args[at : at + len(verbs)]) == verbs:
            return args[:at], args[at + len(verbs) :]
        if not word.startswith("-") and not (at and args[at - 1].startswith("-")):
            break
    return (), ()


def run_image(args: Sequence[str]) -> str | None:
    """The image of `docker run`: the first word that is neither an option nor the value of one."""
    words = iter(split_at(args, ["run"])[1] or split_at(args, ["container", "run"])[1])
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
