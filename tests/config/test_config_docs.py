"""The reference pages say what the settings classes say, and their examples load."""

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from agent_gate.approval.channels.kind import QuietHours
from agent_gate.approval.channels.registry import CHANNELS
from agent_gate.config import auth, issuers, oidc, permissions, settings
from agent_gate.config.channels import person_keys
from agent_gate.config.load import load
from agent_gate.config.servers import settings as servers
from agent_gate.config.servers.section import SERVERS
from agent_gate.config.services import settings as services
from agent_gate.config.services.definition import to_definition
from agent_gate.config.services.section import SERVICES
from agent_gate.config.shape import Field, also, shape
from agent_gate.core.credentials import Proof
from agent_gate.core.signature import compile_signer
from agent_gate.policy.rule import Rule
from agent_gate.sources.browser import settings as browser
from agent_gate.sources.http.request import build
from agent_gate.sources.remote.settings import HOSTS, HostSettings
from agent_gate.sources.web import settings as web

DOCS = Path(__file__).parents[2] / "docs"
CONFIGURATION = {
    "Top level": settings.Settings,
    "`gateway`": settings.GatewaySettings,
    "`gateway.tls`": settings.TlsSettings,
    "`admin`": settings.AdminSettings,
    "`peers`": settings.PeersSettings,
    "`peers.policy.<name>`": settings.PeerPolicySettings,
    "`auth`": auth.AuthSettings,
    "`auth.jwt[]`": issuers.JwtSettings,
    "`auth.oidc`": oidc.OidcSettings,
    "`auth.oidc.roles.<group>`": oidc.GroupRole,
    "`hosts.<name>`": HostSettings,
    "`agents.<name>`": settings.AgentSettings,
    "`rate_limit`": settings.RateLimitSettings,
    **{f"`channels[]`, `type: {name}`": kind.settings for name, kind in CHANNELS.items()},
    "`channels[].quiet`": QuietHours,
    "`people.<name>`": settings.Person,
    "`approvers`": settings.ApproversSettings,
    "`plugins`": services.PluginSettings,
    "`storage`": settings.StorageSettings,
    "`audit`": settings.AuditSettings,
    "`results`": settings.ResultsSettings,
    "`limits`": settings.LimitsSettings,
    "`telemetry`": settings.TelemetrySettings,
    "`log`": settings.LogSettings,
    "`services.<name>`": services.ServiceConfig,
    "`services.<name>.auth`": services.AuthConfig,
    "`services.<name>.health`": services.HealthCheckConfig,
    "`services.<name>.errors`": services.ErrorMapping,
    "`servers.<name>`": servers.ServerSettings,
    "`servers.<name>.auth`": servers.ServerAuth,
    "`servers.<name>.traits`": servers.TraitSettings,
    "`servers.<name>.rate_limit`": servers.ServerRate,
    "`browser`": browser.BrowserSettings,
    "`browser.viewport`": browser.ViewportSettings,
    "`web`": web.WebSettings,
    "`web.search`": web.SearchSettings,
    "`web.weather`": web.WeatherSettings,
}
TOOLS = [
    services.ToolDefinition,
    services.ArgDefinition,
    services.RequestDefinition,
    services.ResponseDefinition,
]
PERMISSIONS = [permissions.Permissions, Rule, permissions.PolicyTest]
PAGES = [
    ("configuration.md", [*CONFIGURATION.values()]),
    ("tools-in-yaml.md", TOOLS),
    ("permissions.md", PERMISSIONS),
]


def rows(cls: type) -> dict[str, str]:
    """What each key of a class means."""
    own = {field.name: field.doc for field in shape(cls) if not field.given}
    return own | {key: extra.doc for key, extra in also(cls).items()}


@pytest.mark.parametrize(("page", "classes"), PAGES)
def test_every_key_has_its_row(page, classes):
    text = (DOCS / page).read_text()
    missing = [
        f"{cls.__name__}.{key}"
        for cls in classes
        for key, doc in rows(cls).items()
        if not re.search(rf"^\| `{key}` \|[^|]*\| {re.escape(doc)}", text, re.MULTILINE)
    ]
    assert missing == []


def parts(page: str) -> dict[str, dict[str, tuple[str, str]]]:
    """Default and meaning of each key, as the tables of a page have them, by heading."""
    headed = (part.partition("\n") for part in re.split(r"^#{2,3} ", page, flags=re.MULTILINE)[1:])
    return {
        head: {
            key: (default.strip(), meaning)
            for key, default, meaning in re.findall(r"^\| `(\w+)` \|([^|]*)\|(.*)\|$", body, re.MULTILINE)
        }
        for head, _, body in headed
    }


def default_as_told(field: Field) -> str:
    if field.required:
        return "required"
    default = field.factory() if field.default is MISSING else field.default
    if default == "" or is_dataclass(default) or isinstance(default, Mapping):
        return ""
    if isinstance(default, float) and default.is_integer():
        default = int(default)
    return f"`{default}`" if isinstance(default, str | Path) else f"`{json.dumps(default)}`"


def choices(kind: Any) -> set[str]:
    if get_origin(kind) is Literal:
        return set(get_args(kind))
    return {choice for inner in get_args(kind) for choice in choices(inner)}


@pytest.mark.parametrize(("head", "cls"), CONFIGURATION.items())
def test_the_defaults_and_choices_of_each_table_are_those_of_its_class(head, cls):
    told = parts((DOCS / "configuration.md").read_text())[head]
    for field in shape(cls):
        if field.given:
            continue
        default, meaning = told[field.name]
        assert (field.name, default) == (field.name, default_as_told(field))
        _, one_of, values = meaning.partition("One of ")
        if one_of:
            assert (field.name, set(re.findall(r"`([^`]+)`", values))) == (field.name, choices(field.type))


def test_every_kind_of_channel_has_its_part_and_what_people_are_known_by_there_its_row():
    text = (DOCS / "configuration.md").read_text()
    for name in CHANNELS:
        assert f"## `channels[]`, `type: {name}`" in text
    for key, brought in person_keys().items():
        assert f"| `{key}` | `null` | {brought.doc} |" in text


def test_every_key_that_a_kind_of_source_brings_has_its_row():
    text = (DOCS / "configuration.md").read_text()
    for section in (SERVICES, SERVERS, HOSTS):
        for key, brought in section.keys.items():
            assert re.search(rf"^\| `{key}` \|[^|]*\| {re.escape(brought.doc)}", text, re.MULTILINE)


@pytest.mark.parametrize("module", [settings, services, servers, permissions])
def test_no_settings_class_is_left_out(module):
    documented = {cls for _, classes in PAGES for cls in classes}
    declared = {
        value
        for value in vars(module).values()
        if hasattr(value, "__dataclass_fields__") and value.__module__ == module.__name__
    }
    assert declared <= documented


def blocks(page: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def test_the_tool_example_loads(write):
    tools, config = blocks("tools-in-yaml.md")
    write("tools/lights.yaml", tools)
    loaded = load(write("config.yaml", config), None, {"LIGHTS_TOKEN": "0123456789abcdef"})
    service = loaded.settings.sources["services"]["lights"]
    arguments = {"room": "kitchen", "level": 20}
    definition = to_definition(service, service.tools[0])
    assert compile_signer(definition.name, definition)(arguments) == "light_set(kitchen)"
    sent = build(service.tools[0], arguments, Proof(), None)
    assert (sent.method, sent.target, sent.body) == ("POST", b"/rooms/kitchen/light", b'{"level":20}')


def test_the_permissions_examples_load(write):
    rules, when = blocks("permissions.md")
    assert len(load(None, write("p.yaml", rules), {}).rules) == 3
    indented = "".join(f"    {line}\n" for line in when.splitlines())
    rule = f"rules:\n  - pattern: a\n    action: ask\n{indented}"
    assert set(load(None, write("w.yaml", rule), {}).rules[0].arguments()) == {
        "branch",
        "remote",
        "path",
        "amount",
        "kind",
        "note",
    }


def test_the_channel_example_loads(write):
    (text,) = blocks("configuration.md")
    channels = text[text.index("channels:") :]
    loaded = load(write("config.yaml", channels), None, {"BOT_TOKEN": "0123456789"})
    assert [channel.name for channel in loaded.settings.channels] == ["telegram", "pager"]
