"""The configuration of a running gateway: as it was at the start, as it counts now, and what of it was refused."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from agent_gate.config.channels import doubt_channels
from agent_gate.config.decode import Reading
from agent_gate.config.doubts import former_stores, open_keys, plain_door
from agent_gate.config.files.dotenv import environment
from agent_gate.config.files.variables import Variables
from agent_gate.config.files.yamlfile import parse_yaml
from agent_gate.config.filled import Filling, LookUp
from agent_gate.config.kinds import sections
from agent_gate.config.load import Loaded, load
from agent_gate.config.options import Options, with_options
from agent_gate.config.permissions import Permissions, read_permissions
from agent_gate.config.settings import Settings
from agent_gate.config.shape import fixed_at_start
from agent_gate.errors import ConfigError
from agent_gate.observe.redact import Redactor

log = logging.getLogger("agent_gate.app")


def same_file(one: Path, other: Path) -> bool:
    """Whether both are one file; a file that was taken away since it was read is none."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def doubts_of(settings: Settings, loaded: Loaded) -> Iterator[str]:
    """What the machine makes doubtful of the settings, whether or not a gateway runs with them."""
    yield from open_keys(settings, loaded.places["gateway.tls.key"])
    yield from doubt_channels(settings, loaded.channels_at)


def code_files(settings: Settings) -> Iterator[Path]:
    """The files of code that sources are made of, as far as the configuration names them."""
    for section in sections():
        yield from section.code(settings)


def value_at(key: str, settings: Settings) -> object:
    """What a key such as `peers.port` says; null where its block is."""
    found: object = settings
    for name in key.split("."):
        found = getattr(found, name, None)
    return found


def stamp(file: Path) -> int:
    """When it was last written; 0 for a file that is gone."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def stamps(files: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """How each file is now: when it was written, and its size. One that is gone is left out."""
    found = {}
    for file in files:
        with suppress(OSError):
            info = file.stat()
            found[file] = (info.st_mtime_ns, info.st_size)
    return found


class Configuration:
    """What the files and the command line say together; options win over settings."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.loaded = self._read()
        self.redactor = Redactor(self.loaded.secrets)
        self.started = self.settings
        self.fault: str | None = None
        self._refused: tuple[Path, ...] = ()
        self._imported: dict[Path, int] = {}
        self._look_up: LookUp | None = None
        self.in_vault: frozenset[str] = frozenset()
        """The secrets of the vault that these settings refer to, beside those of sources."""
        self._note_plugins()
        self._seen = stamps(self.watched)

    @property
    def folder(self) -> Path:
        """Where relative paths begin."""
        return self.options.config.absolute().parent if self.options.config is not None else Path.cwd()

    async def fill(self, look_up: LookUp) -> None:
        """Look up what the settings refer to, now and at every reload."""
        self._look_up = look_up
        self.loaded = await self._fill(self.loaded)
        self.redactor.learn(self.loaded.secrets)

    async def _fill(self, loaded: Loaded) -> Loaded:
        if self._look_up is None:
            return loaded
        filling = Filling(self._look_up)
        settings = await filling.fill_settings(loaded.settings)
        self.in_vault = frozenset(filling.in_vault)
        return replace(
            loaded,
            settings=settings,
            secrets=loaded.secrets | filling.found,
            warnings=(*loaded.warnings, *filling.missing),
        )

    def _plugins(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(code_files(self.settings)))

    def _note_plugins(self) -> None:
        """A module is imported once; how its file was then tells whether other code stands there now."""
        for file in self._plugins():
            self._imported.setdefault(file, stamp(file))

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    def _read(self) -> Loaded:
        loaded = load(self.options.config, self.options.permissions)
        return replace(loaded, settings=with_options(loaded.settings, self.options))

    @asynccontextmanager
    async def trial(self) -> AsyncIterator[Loaded]:
        """What the files say now. It counts once the body has found it good; why it does not is kept and logged.

        Thousands of tools or rules take seconds to read, in which calls go on.
        """
        files: tuple[Path, ...] = ()
        before = stamps(self.watched)
        try:
            loaded = await self._fill(await asyncio.to_thread(self._read))
            files = (*loaded.watched, *code_files(loaded.settings))
            self._refuse_emptied(loaded)
            yield loaded
        except ConfigError as error:
            self.fault, self._refused = error.message, error.files or files
            log.error(
                "The new configuration is not used; the old one keeps serving", extra={"why": error.message}
            )
            self._note_seen(before)
            raise
        self.loaded, self.fault, self._refused = loaded, None, ()
        self._note_plugins()
        self._note_seen(before)

    def _note_seen(self, before: Mapping[Path, tuple[int, int]]) -> None:
        """A file that was written while it was read is read once more: it counts as it was before."""
        self._seen = {file: before.get(file, now) for file, now in stamps(self.watched).items()}

    def is_outdated(self) -> bool:
        """Whether a file is no longer as it was when the files were last read."""
        return stamps(self.watched) != self._seen

    def _refuse_emptied(self, loaded: Loaded) -> None:
        """A file that lost all it said was cut off by a full disk or half a save, far more likely than meant."""
        for file in loaded.blank:
            if file not in self.loaded.blank:
                raise ConfigError(
                    "the file is empty, which would take away all it said; write {} into it if that is meant",
                    where=str(file),
                )

    @property
    def watched(self) -> tuple[Path, ...]:
        """The files whose change is a reason to reload: those in use, and those of a trial that failed."""
        tls = self.settings.gateway.tls
        certificate = (file for file in (tls.cert, tls.key) if file is not None)
        return (*self.loaded.watched, *self._refused, *certificate, *self._plugins())

    def permissions(self) -> Path | None:
        """The file that the rules came from."""
        wanted = self.options.permissions or self.settings.permissions
        if wanted is None and self.options.config is not None:
            wanted = self.options.config.parent / "permissions.yaml"
        return next((file for file in self.loaded.files if wanted and same_file(file, wanted)), None)

    def parse_permissions(self, text: str, name: str) -> Permissions:
        """A text as if it were the permissions file, with the same variables."""
        reading = Reading(Variables(self.environment()))
        return read_permissions(reading.variables.fill(parse_yaml(text, name)), reading)

    def environment(self) -> Mapping[str, str]:
        """The variables as the files see them: those of the process, and those of `.env`."""
        return environment(self.options.config, os.environ, [])[0]

    def warnings(self) -> list[str]:
        """What the files say that may not be meant, and what of it does not count yet."""
        changed = [
            key
            for key in fixed_at_start(Settings)
            if value_at(key, self.settings) != value_at(key, self.started)
        ]
        changed += [str(file) for file in self._plugins() if self._imported.get(file, 0) != stamp(file)]
        return [
            *self.loaded.warnings,
            *self._doubts(),
            *(f"{key} was changed; it counts after a restart" for key in changed),
        ]

    def _doubts(self) -> Iterator[str]:
        """What the command line and the machine make doubtful of the settings."""
        places = self.loaded.places
        yield from doubts_of(self.settings, self.loaded)
        yield from former_stores(os.environ)
        if self.options.insecure:
            at = "--host" if self.options.host is not None else f"{places['gateway.host']}: gateway.host"
            page = (
                "--admin-host"
                if self.options.admin_host is not None
                else f"{places['admin.host']}: admin.host"
            )
            yield from plain_door(self.settings, at, page)
