"""The key `browser:` of config.yaml: which browser, how many of its pages, and what they may reach."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from agent_gate.config.decode import Reading, decode
from agent_gate.config.files.nodes import Node
from agent_gate.config.kinds import Section
from agent_gate.config.shape import GIVEN, AtLeast, AtMost, InFile

KEY = "browser"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewportSettings:
    """The size of every page."""

    width: Annotated[int, "Pixels across.", AtLeast(200), AtMost(4000)] = 1280
    height: Annotated[int, "Pixels down.", AtLeast(200), AtMost(4000)] = 800


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSettings:
    """A headless browser for agents."""

    enabled: Annotated[bool, "Whether the tools are there."] = True
    executable: Annotated[Path | None, "Chromium, Chrome or Edge; null looks for one that is installed."] = (
        None
    )
    idle: Annotated[float, "Seconds without a call after which a session's pages are closed.", AtLeast(1)] = (
        600.0
    )
    max_tabs: Annotated[int, "Pages that one session may have open.", AtLeast(1), AtMost(64)] = 8
    max_contexts: Annotated[int, "Sessions that may have pages open.", AtLeast(1), AtMost(64)] = 4
    max_megabytes: Annotated[int, "Memory of the browser, above which it is replaced.", AtLeast(256)] = 3072
    max_download: Annotated[int, "Bytes of the largest file that is downloaded.", AtLeast(1)] = 20 << 20
    timeout: Annotated[float, "Seconds that one call may take.", AtLeast(1)] = 30.0
    allow_private: Annotated[
        tuple[str, ...], "Hosts and networks that pages may reach although they are not public."
    ] = ()
    viewport: Annotated[ViewportSettings, "The size of every page."] = ViewportSettings()
    proxy: Annotated[
        str,
        "HTTP proxy that the checked traffic leaves through, such as `http://10.0.0.1:3128`, with `user:password@` where it wants a login.",
    ] = field(default="", repr=False)
    logins: Annotated[
        Mapping[str, str],
        "What `browser_login` fills in: an origin, and the secret that holds `user:password`, such as `vault:shop`.",
    ] = field(default_factory=dict, repr=False)
    where: Annotated[str, "File and line of this entry.", GIVEN] = field(default="", compare=False)


def read(root: Node, reading: Reading) -> Mapping[str, BrowserSettings]:
    found = root.get(KEY)
    if found is None:
        return {}
    return {KEY: decode(found, BrowserSettings, KEY, reading, where=str(root.key_mark(KEY)))}


BROWSER: Section[BrowserSettings] = Section(
    KEY,
    read,
    {KEY: InFile({"$ref": "#/$defs/BrowserSettings"}, "A headless browser for agents.")},
    (BrowserSettings, ViewportSettings),
)
