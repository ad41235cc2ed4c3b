import time

import msgspec
import pytest
from tests.typescript.standin import TOKEN, Gateway, catalog, tool

from agent_gate.core.call import Caller
from agent_gate.core.catalog import build
from agent_gate.net.http import Request
from agent_gate.surfaces.typescript.module import ScriptServer, generate
from agent_gate.surfaces.typescript.surface import TypeScriptSurface

SERVERS = {
    "github": [tool("create_issue", {"title": {"type": "string"}}, required=["title"]), tool("listIssues")],
    "github-api": [tool("ping")],
    "empty": [],
    "123server": [tool("now", description="What time it is")],
}


AUTHORIZATION = (b"authorization", f"Bearer {TOKEN}".encode())


async def ask(gateway, target, headers=(AUTHORIZATION,), method="GET"):
    request = Request(method, target.encode(), dict(headers))
    return await gateway.surface.handle(request)


async def module(target="/runtime/tools.ts", servers=SERVERS):
    response = await ask(Gateway(catalog(servers)), target)
    assert response.status == 200
    assert response.content_type == b"application/typescript"
    return response.body.decode()


def exported(text):
    return text[text.index("export const tools") :]


async def test_the_module_holds_all_servers_in_camel_case():
    tools = exported(await module())
    assert "  github: {\n" in tools
    assert "  githubApi: {\n" in tools
    assert "  _123server: {\n" in tools
    assert "createIssue: (args: GithubCreateIssueParams, options?: CallOptions)" in tools
    assert 'callText("github__create_issue", args, options)' in tools


async def test_a_server_without_tools_still_appears():
    assert "  empty: {},\n" in exported(await module())


async def test_no_servers_give_an_empty_object():
    assert exported(await module(servers={})) == "export const tools = {};\n"


@pytest.mark.parametrize("name", ["github-api", "githubApi"])
async def test_a_server_is_chosen_by_its_own_or_its_generated_name(name):
    tools = exported(await module(f"/runtime/tools.ts?server={name}"))
    assert "githubApi: {" in tools
    assert "github: {" not in tools


@pytest.mark.parametrize("name", ["create_issue", "createIssue", "github__create_issue"])
async def test_a_tool_is_chosen_by_its_own_or_its_generated_name(name):
    tools = exported(await module(f"/runtime/tools.ts?server=github&tool={name}"))
    assert "createIssue: (" in tools
    assert "listIssues" not in tools


async def test_an_unknown_server_gives_an_empty_object():
    assert exported(await module("/runtime/tools.ts?server=nobody")) == "export const tools = {};\n"


async def test_an_unknown_tool_gives_its_server_empty():
    text = await module("/runtime/tools.ts?server=github&tool=nothing")
    assert exported(text) == "export const tools = { github: {} };\n"


async def test_a_tool_without_its_server_is_refused_with_what_to_do():
    response = await ask(Gateway(catalog(SERVERS)), "/runtime/tools.ts?tool=createIssue")
    assert response.status == 400
    error = msgspec.json.decode(response.body)["error"]
    assert error["code"] == "INVALID_ARGS"
    assert "server=" in error["message"]


async def test_unknown_parameters_are_left_alone_because_scripts_add_them_against_caches():
    assert await module("/runtime/tools.ts?_t=17") == await module()


async def test_a_filter_never_changes_a_name():
    clash = {"s": [tool("get_item"), tool("get-item")]}
    whole, part = await module(servers=clash), await module("/runtime/tools.ts?server=s&tool=get-item", clash)
    line = next(line for line in exported(part).splitlines() if "getItem_" in line)
    assert line in whole.splitlines()


async def test_types_of_servers_and_tools_that_fold_together_stay_apart():
    text = await module(servers={"a": [tool("b_c")], "a_b": [tool("c")]})
    assert (
        text.count("export type ABC")
        == len({line for line in text.splitlines() if "export type ABC" in line})
        == 2
    )


@pytest.mark.parametrize(
    ("declared", "more", "open_ended"),
    [
        (frozenset({"entity"}), {}, True),
        (frozenset({"entity"}), {"additionalProperties": False}, False),
        (None, {}, False),
    ],
)
async def test_a_tool_that_passes_undeclared_arguments_on_takes_them_from_a_script(
    declared, more, open_ended
):
    schema = {"type": "object", "properties": {"entity": {"type": "string"}}, "required": ["entity"], **more}
    text = await module(servers={"home": [tool("turn_on", input_schema=schema, declared=declared)]})
    params = text[text.index("export interface HomeTurnOnParams") :].partition("}")[0]
    assert "  entity: string;\n" in params
    assert ("[key: string]: unknown;" in params) is open_ended


async def test_a_request_without_a_token_is_refused():
    assert (await ask(Gateway(catalog(SERVERS)), "/runtime/tools.ts", headers=())).status == 401


async def test_only_reading_is_possible():
    response = await ask(Gateway(catalog(SERVERS)), "/runtime/tools.ts", method="POST")
    assert response.status == 405


async def test_the_module_is_made_once_per_catalog_and_again_after_a_change():
    gateway = Gateway(catalog(SERVERS))
    first = (await ask(gateway, "/runtime/tools.ts")).body
    assert (await ask(gateway, "/runtime/tools.ts")).body is first
    gateway.catalog = catalog({**SERVERS, "empty": [tool("new")]})
    assert b"new:" in (await ask(gateway, "/runtime/tools.ts")).body


async def test_an_unchanged_module_is_not_sent_again():
    gateway = Gateway(catalog(SERVERS))
    headers = dict((await ask(gateway, "/runtime/tools.ts")).headers)
    assert headers[b"x-content-type-options"] == b"nosniff"
    etag = headers[b"etag"]
    again = await ask(gateway, "/runtime/tools.ts", headers=(AUTHORIZATION, (b"if-none-match", etag)))
    assert (again.status, again.body) == (304, b"")


async def test_many_different_filters_do_not_grow_the_memory():
    gateway = Gateway(catalog(SERVERS))
    for n in range(200):
        await ask(gateway, f"/runtime/tools.ts?server=x{n}")
    assert len(gateway.surface._modules) == 64


async def test_a_caller_sees_only_its_own_namespaces():
    whole = catalog(SERVERS)
    caller = Caller(name="pi", namespaces=frozenset({"github"}))
    surface = TypeScriptSurface(
        lambda _: caller, lambda: whole, lambda who: [one for one in whole.tools if who.sees(one.namespace)]
    )
    response = await surface.handle(Request("GET", b"/runtime/tools.ts", {}))
    text = response.body.decode()
    assert "createIssue" in text
    assert "123server" not in text


def test_the_module_is_the_same_whatever_the_order_of_the_sources():
    listings = list(catalog(SERVERS).listings.values())
    one, two = build(listings), build(listings[::-1])
    servers = [ScriptServer(entry.namespace, entry.key) for entry in listings]
    assert generate(one.tools, servers) == generate(two.tools, servers[::-1])


def test_a_thousand_tools_are_made_into_a_module_in_well_under_a_second():
    many = {"big": [tool(f"tool_{n}", {"a": {"type": "string"}}, description="x" * 200) for n in range(1000)]}
    whole = catalog(many)
    servers = [ScriptServer("big", "big")]
    started = time.process_time()
    text = generate(whole.tools, servers)
    spent = time.process_time() - started
    assert text.count('callText("big__tool_') == 1000
    assert spent < 1.0
