"""Numbers, names and examples of the pages are those of the program."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from agent_gate.cli.commands.bridge import command as bridge
from agent_gate.cli.commands.explain import command as explain
from agent_gate.cli.demo.starter import ensure_secrets, write_starter
from agent_gate.cli.sessions import LEARN_SECONDS
from agent_gate.config.clients.model import Surroundings
from agent_gate.config.clients.registry import CLIENTS
from agent_gate.config.files.dotenv import read_dotenv
from agent_gate.config.load import load
from agent_gate.config.settings import ResultsSettings
from agent_gate.discovery.cards import AIM, CAP
from agent_gate.discovery.rank import SHORTLIST
from agent_gate.discovery.signals.meaning import NEAR
from agent_gate.discovery.tree import MAX_CHILDREN
from agent_gate.observe import trace
from agent_gate.observe.failpoint import NAMES
from agent_gate.observe.metrics import MOST_SERIES
from agent_gate.results.budget import DEFAULT_BUDGET
from agent_gate.results.handles import MOST_BYTES, MOST_REFERENCES
from agent_gate.results.jsonpath import MOST_VALUES
from agent_gate.results.readers import SMALL
from agent_gate.results.reading_child import MEMORY, SECONDS
from agent_gate.results.views import VIEW_BUDGET
from agent_gate.sources.mcp.sessions.meeting import LONGEST_ABOUT

ROOT = Path(__file__).parents[2]
WORDS = {60: "sixty", 4_000_000: "four million"}
PATIENCE = next(option for option in bridge.params if option.name == "patience").default


def page(name):
    return (ROOT / name).read_text()


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        ("discovery", f"A card has {AIM} tokens or fewer, {CAP} where"),
        ("discovery", f"These few words ({LONGEST_ABOUT} characters)"),
        ("discovery", f"The best {WORDS[SHORTLIST]} are ordered anew"),
        ("discovery", f"clusters of them when there are more than {MAX_CHILDREN} "),
        ("discovery", f"only one above the budget ({DEFAULT_BUDGET:,} tokens"),
        ("discovery", f"`results.retention_days` ({ResultsSettings().retention_days:g})"),
        ("discovery", f"no answer exceeds {VIEW_BUDGET:,} tokens"),
        ("discovery", f"A result above {SMALL // 1024} KB is read by a process of its own"),
        ("discovery", f"a look has {SECONDS} seconds and {MEMORY >> 30} GB of memory"),
        ("discovery", f"A `jsonpath` looks at {WORDS[MOST_VALUES]} values at most"),
        ("discovery", f"mention {MOST_REFERENCES} handles, and {MOST_BYTES >> 20} MiB of results"),
        ("discovery", f"whose cosine to the request is {NEAR} or more is shown"),
        ("telemetry", f"A series has at most {MOST_SERIES:,} combinations"),
        ("connect", f"(`--patience`, {PATIENCE:g} s)"),
        ("connect", f"at the latest after {LEARN_SECONDS:g} seconds"),
    ],
)
def test_a_bound_is_stated_as_it_is_in_force(name, stated):
    assert stated in page(f"docs/{name}.md")


def test_the_crash_harness_has_as_many_places_as_the_readme_says():
    assert f"kills at {len(NAMES)} named places" in page("README.md")


def test_the_readme_installs_the_browser_before_anything_else_was_run():
    assert "`make browser` before the first `make run`" in page("README.md")
    target = page("Makefile").partition("\nbrowser: $(VENV)/.run")[2].partition("\n\n")[0]
    assert "'.[browser]'" in target
    assert "browser" in tomllib.loads(page("pyproject.toml"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS.keys())
def test_the_files_of_a_client_are_those_of_its_row(client):
    [row] = [line for line in page("docs/connect.md").splitlines() if f"| `{client.name}` |" in line]
    place = Surroundings(Path("/home/ada"), Path("/project"), "linux", {})
    user, _, project = row.partition("`--project`: ")
    assert row.startswith(f"| {client.title} |")
    files = {
        scope: [one.path for one in client.files(place) if one.scope == scope]
        for scope in ("user", "project")
    }
    if named := re.search(r"`~/([^`]+)`", user):
        assert place.home / named[1] == files["user"][0]
    if named := re.search(r"`([^`]+)`", project):
        assert place.cwd / named[1] in files["project"]
    assert bool(project) is bool(files["project"])


def test_the_attributes_of_a_span_are_those_the_page_lists():
    [listed] = [line for line in page("docs/telemetry.md").splitlines() if line.startswith("Attributes: ")]
    stated = {
        f"agent_gate{name}" if name.startswith(".") else name for name in re.findall(r"`([a-z_.]+)`", listed)
    }
    source = Path(trace.__file__).read_text()
    assert stated == set(re.findall(r'"((?:mcp|gen_ai|jsonrpc|error|agent_gate)\.[a-z_.]+)"', source))


@pytest.fixture
def starter(tmp_path, monkeypatch):
    """The folder that `make run` fills."""
    write_starter(tmp_path)
    ensure_secrets(tmp_path / ".env")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explained(*call):
    done = CliRunner().invoke(explain, ["--offline", "--config", "config.yaml", "--json", *call])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_rules_of_the_readme_are_rules(starter):
    [rules] = re.findall(r"```yaml\n(# permissions\.yaml.*?)```", page("README.md"), re.DOTALL)
    (starter / "permissions.yaml").write_text(rules)
    loaded = load(Path("config.yaml"), env=read_dotenv(starter / ".env"))
    assert len(loaded.rules) == len(YAML(typ="safe", pure=True).load(rules)["rules"])
    assert explained("ha_fire_event", "event_type=party")["effect"] == "ask"


@pytest.mark.parametrize("effect", ["allow", "deny", "ask"])
def test_the_calls_of_the_tour_are_decided_as_it_says(starter, effect):
    tour = re.findall(r"^\$ agent-gate request (ha_.*)$", page("README.md"), re.MULTILINE)
    call = dict(zip(("allow", "deny", "ask"), tour, strict=True))[effect]
    assert explained(*call.split())["effect"] == effect
