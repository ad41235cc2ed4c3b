"""What the command line adds to the files."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from agent_gate.config.settings import Settings

T = TypeVar("T")
STORE = "agent-gate.db"
"""The store's file in a folder that an option names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `serve`. `data` overrules where the store and the admin socket are. `worker` is the number of one
    of several processes that are one gateway to callers; `lender` holds the programs of stdio servers for them."""

    config: Path | None = None
    permissions: Path | None = None
    host: str | None = None
    port: int | None = None
    insecure: bool = False
    data: Path | None = None
    admin_host: str | None = None
    admin_port: int | None = None
    admin_tls: Literal["auto", "off"] | None = None
    worker: int | None = None
    lender: Path | None = None


def in_folder(settings: Settings, data: Path) -> Settings:
    """The settings of a gateway that keeps its store and socket in `data` and its admin page on any free port."""
    return replace(
        settings,
        storage=replace(settings.storage, path=data / STORE),
        admin=replace(settings.admin, socket=data / "admin.sock", port=0),
    )


def as_worker(settings: Settings, number: int) -> Settings:
    """The settings of one worker: a name and a chain of its own; the first has the operator's listeners."""
    gateway = replace(settings.gateway, id=f"{settings.gateway.id}-{number}", reuse_port=True)
    if number == 1:
        return replace(settings, gateway=gateway)
    socket = settings.admin.socket.with_name(f"{settings.admin.socket.stem}-{number}.sock")
    return replace(
        settings,
        gateway=gateway,
        admin=replace(settings.admin, host="127.0.0.1", port=0, socket=socket),
        peers=None,
    )


def with_options(settings: Settings, options: Options) -> Settings:
    if options.data is not None:
        settings = in_folder(settings, options.data)
    if options.worker is not None:
        settings = as_worker(settings, options.worker)
    gateway, admin = settings.gateway, settings.admin
    return replace(
        settings,
        gateway=replace(
            gateway, host=given(options.host, gateway.host), port=given(options.port, gateway.port)
        ),
        admin=replace(
            admin,
            host=given(options.admin_host, admin.host),
            port=given(options.admin_port, admin.port),
            tls=given(options.admin_tls, admin.tls),
        ),
    )


def given(option: T | None, setting: T) -> T:
    return setting if option is None else option
