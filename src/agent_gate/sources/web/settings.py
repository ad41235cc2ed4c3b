"""The key `web:` of config.yaml: which search, whose weather, and which private hosts may be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from agent_gate.config.decode import Reading, decode
from agent_gate.config.files.nodes import Node
from agent_gate.config.kinds import Section
from agent_gate.config.settings import Settings
from agent_gate.config.shape import GIVEN, AtLeast, InFile
from agent_gate.core.tool import Definition

KEY = "web"
Provider = Literal["duckduckgo", "searxng", "brave", "local"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Where `browser_search` looks."""

    provider: Annotated[
        Provider, "`duckduckgo` needs no key, `searxng` a `url`, `brave` a `token`, `local` a `folder`."
    ] = "duckduckgo"
    url: Annotated[str, "Another address of the provider, such as your own SearXNG."] = ""
    token: Annotated[str, "The provider's key."] = field(default="", repr=False)
    folder: Annotated[Path | None, "For `local`: a folder of Markdown, text and HTML files."] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeatherSettings:
    """Where `weather_get` asks."""

    url: Annotated[str, "Address of the forecast."] = "https://api.open-meteo.com/v1/forecast"
    places_url: Annotated[str, "Address at which names of places are looked up."] = (
        "https://geocoding-api.open-meteo.com/v1/search"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """Pages, search and weather."""

    enabled: Annotated[bool, "Whether the tools are there."] = True
    allow_private: Annotated[
        tuple[str, ...], "Hosts and networks that may be read although they are not public."
    ] = ()
    max_bytes: Annotated[int, "The largest page that is read.", AtLeast(1)] = 10 << 20
    timeout: Annotated[float, "Seconds that one call may take.", AtLeast(1)] = 30.0
    search: Annotated[SearchSettings, "Where to search."] = SearchSettings()
    weather: Annotated[WeatherSettings, "Where to ask for the weather."] = WeatherSettings()
    where: Annotated[str, "File and line of this entry.", GIVEN] = field(default="", compare=False)


def read(root: Node, reading: Reading) -> Mapping[str, WebSettings]:
    found = root.get(KEY)
    if found is None:
        return {}
    return {KEY: decode(found, WebSettings, KEY, reading, where=str(root.key_mark(KEY)))}


def known_tools(settings: Settings) -> Mapping[str, Sequence[Definition]]:
    configured = WEB.of(settings)
    if not configured:
        return {}
    from agent_gate.sources.web.source import TOOLS

    return dict.fromkeys(configured, TOOLS)


WEB: Section[WebSettings] = Section(
    KEY,
    read,
    {KEY: InFile({"$ref": "#/$defs/WebSettings"}, "Pages, search and weather for agents.")},
    (WebSettings, SearchSettings, WeatherSettings),
    tools=known_tools,
)
