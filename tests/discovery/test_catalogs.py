"""The table of the servers that discovery is measured on, and how a server that fails is left out of it."""

import json
import re
import sys

import pytest
from bench import catalogs
from bench.catalogs import FIRST, SECOND, SERVERS, UNSEEN, LeftOut, Server
from bench.suites import REQUESTS, own

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        found = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                 "serverInfo": {"name": "Clock", "version": "1"}}
    elif asked.get("method") == "tools/list":
        page = (asked.get("params") or {}).get("cursor")
        found = {"tools": [{"name": "later" if page else "now", "inputSchema": {"type": "object"}}]}
        found |= {} if page else {"nextCursor": "2"}
    else:
        found = None
    if "id" in asked and found is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found}), flush=True)
    elif "id" in asked:
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
"""


def named(sets: str) -> set[str]:
    return {server.name for server in SERVERS if sets in server.sets}


def test_every_server_is_in_the_table_once():
    names = [server.name for server in SERVERS]
    assert len(names) == len(set(names))
    assert len({server.pin for server in SERVERS}) == len(names)


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_a_server_has_one_exact_version_and_a_set(server):
    assert re.fullmatch(r"\d+(\.\d+)+", server.version)
    assert server.sets
    assert set(server.sets) <= {FIRST, SECOND, UNSEEN}


@pytest.mark.parametrize("sets", [FIRST, SECOND, UNSEEN])
def test_every_request_names_servers_of_its_set(sets):
    lines = [json.loads(line) for line in (REQUESTS / f"{sets}.jsonl").read_text().splitlines()]
    asked = {tool.partition(":")[0] for line in lines for part in line["right"] for tool in part}
    assert asked
    assert asked <= named(sets)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The cache somewhere else, with a server `clock` that is already installed."""
    monkeypatch.setattr(catalogs, "SERVERS_FOLDER", tmp_path / "servers")
    monkeypatch.setattr(catalogs, "CATALOGS", tmp_path / "catalogs")
    return tmp_path


def installed(folder, program: str) -> Server:
    server = Server("time", "pypi", "clock", "1.0", (FIRST,), ["{work}"])
    script = server.folder / "bin" / "clock"
    script.parent.mkdir(parents=True)
    (server.folder / "work").mkdir()
    script.write_text(f"#!{sys.executable}\n{program}")
    script.chmod(0o755)
    (server.folder / "installed").write_text(server.pin)
    return server


def test_a_server_is_listed_to_its_last_page_and_then_kept_as_a_catalog_only(folder, monkeypatch):
    server = installed(folder, SERVER)
    monkeypatch.setattr(catalogs, "SERVERS", (server,))
    assert list(catalogs.gather()) == []
    suite = own(FIRST, folder / "catalogs" / FIRST)
    assert [tool.upstream for tool in suite.catalog.tools] == ["later", "now"]
    assert not server.folder.exists()
    assert catalogs.cached(server)


def test_a_server_that_ends_at_once_is_left_out_with_what_it_said(folder, monkeypatch):
    server = installed(folder, "import sys; sys.exit('it wants a key')")
    monkeypatch.setattr(catalogs, "SERVERS", (server,))
    [(left_out, reason)] = catalogs.gather()
    assert left_out == server
    assert "it wants a key" in reason


def test_an_installer_that_is_absent_or_fails_is_a_reason_to_leave_a_server_out():
    with pytest.raises(LeftOut, match="is not installed"):
        catalogs.run("no-such-installer")
    with pytest.raises(LeftOut, match="no such package"):
        catalogs.run(sys.executable, "-c", "import sys; sys.exit('no such package')")


def test_a_registry_that_keeps_failing_is_not_asked_again_but_the_other_is(folder, monkeypatch):
    def install(server):
        raise LeftOut(f"no {server.kind}")

    table = [Server(f"{kind}{at}", kind, "x", "1.0", (FIRST,)) for kind in ("npm", "pypi") for at in range(4)]
    monkeypatch.setattr(catalogs, "SERVERS", table)
    monkeypatch.setattr(catalogs, "install", install)
    reasons = [reason for _, reason in catalogs.gather()]
    assert reasons[:3] == ["no npm"] * 3
    assert reasons[4:7] == ["no pypi"] * 3
    assert reasons[3].startswith("not tried")
    assert reasons[7].startswith("not tried")
