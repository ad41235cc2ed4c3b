"""What `hosts:` of config.yaml says: the tool hosts on this machine. Paired ones are no part of the configuration."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from agent_gate.config.kinds import section
from agent_gate.config.shape import GIVEN


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """A tool host on this machine."""

    socket: Annotated[Path, "Unix socket it listens on; it and its folder must be this user's or root's."]
    trust: Annotated[bool, "Believe what it says of its tools: `idempotent`, and no side effects."] = False
    publish: Annotated[
        tuple[str, ...], "The types of event it may publish, such as `cron.*`; its socket is asked for them."
    ] = ()
    where: Annotated[str, "File and line of this entry.", GIVEN] = field(default="", compare=False)


HOSTS = section("hosts", HostSettings, "Tool hosts on this machine; each key is a namespace.")
