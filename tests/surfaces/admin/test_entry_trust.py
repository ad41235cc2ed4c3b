"""Which changes of an entry wait for a yes: everything but what is known to be harmless, however it is written."""

import pytest

from agent_gate.config.servers.settings import ServerSettings
from agent_gate.config.services.settings import ServiceConfig
from agent_gate.config.shape import keys as file_keys
from agent_gate.surfaces.admin.trust import CARRYING, QUIET, REACHING, needs_trust

LOUD = {
    "command", "args", "env", "environment", "cwd", "handler", "handler_class", "options", "ca", "mask_results",
}  # fmt: skip
"""Fields that decide what runs, what is read, or what is shown; with those of `trust.py` they are all there are."""
OLD = {"url": "https://notes.example/mcp", "auth": {"type": "bearer", "token": "vault:notes"}}


def test_every_field_of_an_entry_was_thought_about():
    """A field that is added later waits for a yes until somebody says here that it is harmless."""
    fields = {*file_keys(ServerSettings), *file_keys(ServiceConfig)}
    assert fields == LOUD | QUIET - {"description"} | CARRYING | REACHING


@pytest.mark.parametrize("field", sorted(LOUD))
def test_what_decides_what_runs_or_is_shown_waits_in_every_entry(field):
    assert needs_trust(OLD, OLD | {field: "x"})
    assert needs_trust(None, {"url": "https://new.example", field: "x"})


@pytest.mark.parametrize("field", sorted(REACHING))
def test_what_is_there_goes_nowhere_else_by_itself(field):
    """Also where the file has no credential: somebody may have signed in."""
    assert needs_trust(OLD, OLD | {field: "https://evil.example"})
    assert needs_trust({"url": "https://notes.example"}, {"url": "https://notes.example", field: "sse"})
    assert needs_trust(None, {field: "https://evil.example"}, has_account=True)


@pytest.mark.parametrize(
    "text",
    [
        "env:TOKEN",
        "Bearer env:TOKEN",
        "Bearer\tenv:TOKEN",
        "bearer\n\nfile:/etc/hostname",
        "TOKEN\u2003keyring:github",
        "file:secrets/token",
        "${HOME}",
        "x${input:key}",
        "vault:github",
        "Bearer\tvault:github",
        "Basic\u00a0vault:github",
    ],
)
@pytest.mark.parametrize("field", ["headers", "http_headers", "auth", "description", "tools"])
def test_no_spelling_of_a_reference_gives_away_what_its_author_may_not_know(text, field):
    value = {"type": "bearer", "token": text} if field == "auth" else {"X-Key": text}
    assert needs_trust(None, {"url": "https://new.example", field: value})
    assert needs_trust(OLD, OLD | {field: value})


@pytest.mark.parametrize(
    "auth",
    [
        {"type": "client-credentials", "client_id": "x", "client_secret": "y"},
        {"type": "oauth2", "token_url": "https://evil.example/token"},
        {"type": "oauth2", "authorize_url": "https://evil.example", "token_url": "https://evil.example"},
        {"type": "token-exchange", "client_id": "x"},
        {"type": "bearer", "env": "TOKEN"},
        {"type": "oauth2", "identity_url": "https://evil.example"},
        "bearer",
    ],
)
def test_a_credential_that_leads_to_another_address_waits(auth):
    assert needs_trust(None, {"url": "https://new.example", "auth": auth})
    assert needs_trust(OLD, OLD | {"auth": auth})


@pytest.mark.parametrize("tools", ["/etc/passwd", "../other/tools.yaml", ["a.yaml", "a/../../b.yaml"], "~/x"])
def test_tools_are_read_from_the_folder_of_the_configuration_alone(tools):
    assert needs_trust(None, {"url": "https://new.example", "tools": tools})


@pytest.mark.parametrize("kind", ["stdio", "stdio-mcp"])
def test_a_new_entry_is_no_program(kind):
    assert needs_trust(None, {"url": "https://new.example", "type": kind})


def test_what_was_switched_off_starts_no_program_again_by_itself():
    program = {"command": "notes", "enabled": False}
    assert needs_trust(program, program | {"enabled": True})
    assert needs_trust(program, {"command": "notes"})
    assert not needs_trust({"command": "notes"}, program)


def test_what_an_author_knows_or_harms_nobody_counts_at_once():
    new = {"url": "https://new.example", "auth": {"type": "bearer", "token": "vault:new"}}
    assert not needs_trust(None, new, {"new"})
    assert needs_trust(None, new, {"other"})
    assert not needs_trust(None, {"url": "https://new.example", "tools": "tools/new.yaml"})
    assert not needs_trust(OLD, OLD | {"timeout": 30, "exclude": ["delete_*"]})
    assert not needs_trust(OLD, OLD | {"enabled": False})
    assert not needs_trust(OLD, OLD | {"auth": {"type": "bearer", "token": "vault:mine"}}, {"mine"})
    assert not needs_trust(OLD, None)
