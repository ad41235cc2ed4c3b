"""The generated module in the real compiler, in Deno and in Node, for real and hostile catalogues."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.typescript.catalogues import hostile, real
from tests.typescript.node_tools import deno, new_node, node, quiet_environment, tsc
from tests.typescript.standin import TOKEN, Gateway, catalog, refuse, run, serving, tool
from tests.waiting import PATIENCE

from agent_gate.core.tool import Definition
from agent_gate.surfaces.typescript.module import ScriptServer, generate

STRICT = {
    "compilerOptions": {
        "strict": True,
        "exactOptionalPropertyTypes": True,
        "noUncheckedIndexedAccess": True,
        "noImplicitReturns": True,
        "verbatimModuleSyntax": True,
        "erasableSyntaxOnly": True,
        "target": "es2022",
        "module": "esnext",
        "moduleResolution": "bundler",
        "lib": ["es2022", "dom"],
        "types": [],
        "outDir": "out",
        "rootDir": ".",
    },
    "include": ["*.ts"],
}
GITHUB: dict[str, list[Definition]] = {
    "github": [
        tool(
            "create_issue",
            {"title": {"type": "string"}, "labels": {"type": "array", "items": {"type": "string"}}},
            required=["title"],
            output_schema={
                "type": "object",
                "properties": {"number": {"type": "integer"}},
                "required": ["number"],
            },
        ),
        tool("list_issues"),
        tool(
            "list_labels",
            output_schema={
                "type": "array",
                "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            },
        ),
        tool("delete_repo", {"name": {"type": "string"}}, required=["name"]),
        tool("text"),
    ]
}


def written(folder: Path, name: str, servers: dict[str, list[Definition]]) -> None:
    whole = catalog(servers)
    assert not whole.excluded
    text = generate(
        whole.tools, [ScriptServer(entry.namespace, entry.key) for entry in whole.listings.values()]
    )
    (folder / name).write_text(text, encoding="utf-8")


async def compiled(folder: Path) -> str:
    (folder / "tsconfig.json").write_text(json.dumps(STRICT))
    done = await run(tsc(), "--project", str(folder), env=quiet_environment(folder))
    return done.out + done.err


def environment(folder: Path, gateway: Gateway, **more: str) -> dict[str, str]:
    return quiet_environment(folder, AGENT_GATE_URL=gateway.url, AGENT_TOKEN=TOKEN, **more)


async def test_twenty_real_and_hostile_catalogues_compile_strictly_and_run_nothing_when_imported(tmp_path):
    everyone = {**(await real(tmp_path)), **hostile()}
    assert len(everyone) >= 20
    for n, (key, definitions) in enumerate(everyone.items()):
        written(tmp_path, f"c{n}.ts", {key: definitions})
    written(tmp_path, "all.ts", everyone)
    assert await compiled(tmp_path) == ""
    check = "import { tools } from './out/all.js'; console.log(globalThis.owned, Object.keys(tools).length);"
    (tmp_path / "check.mjs").write_text(check)
    done = await run(node(), "check.mjs", env=quiet_environment(tmp_path), cwd=str(tmp_path))
    assert (done.code, done.out, done.err) == (0, f"undefined {len(everyone)}\n", "")
    plain = await run(
        deno(),
        "run",
        "--no-remote",
        "--check",
        "all.ts",
        env=quiet_environment(tmp_path),
        cwd=str(tmp_path),
    )
    assert plain.code == 0, plain.err


async def test_wrong_arguments_are_found_by_the_compiler(tmp_path):
    written(tmp_path, "tools.ts", GITHUB)
    (tmp_path / "good.ts").write_text(
        'import { tools } from "./tools";\n'
        'const made = await tools.github.createIssue({ title: "x", labels: ["a"] });\n'
        "const number: number = made.number;\nconsole.log(number, await tools.github.listIssues());\n"
        "const names: string[] = (await tools.github.listLabels()).map((label) => label.name);\nexport { names };\n"
    )
    (tmp_path / "bad.ts").write_text(
        'import { tools } from "./tools";\n'
        "tools.github.createIssue({ title: 1 });\n"
        'tools.github.createIssue({ titel: "x" });\n'
        "tools.github.createIssue();\n"
        'tools.github.createIssue({ title: "x" }).then((made) => made.nummer);\n'
    )
    found = await compiled(tmp_path)
    assert [line for line in (2, 3, 4, 5) if f"bad.ts({line}," in found] == [2, 3, 4, 5]
    assert "good.ts" not in found
    assert "tools.ts(" not in found


SCRIPT = """
const { tools, AgentGateError } = %s;
const made = await tools.github.createIssue({ title: "x" });
const text = await tools.github.listIssues();
const plain = await tools.github.text();
let caught: unknown = null;
try {
  await tools.github.deleteRepo({ name: "a" });
} catch (error) {
  if (error instanceof AgentGateError) caught = { ...error, message: error.message };
}
console.log(JSON.stringify({ made, text, plain, caught }));
"""
EXPECTED = {
    "made": {"number": 7},
    "text": [{"title": "one"}],
    "plain": "{ not json",
    "caught": {
        "name": "AgentGateError",
        "code": "INVALID_ARGS",
        "message": "No such repository",
        "retryable": False,
        "details": {"errors": ["No such repository"]},
    },
}


def answering() -> Gateway:
    return Gateway(
        catalog(GITHUB),
        {
            "github__create_issue": lambda _: {"number": 7},
            "github__list_issues": lambda _: '[{"title": "one"}]',
            "github__text": lambda _: "{ not json",
            "github__delete_repo": refuse("No such repository"),
        },
    )


async def test_deno_imports_the_module_over_http_and_calls_through_it(tmp_path):
    async with serving(answering()) as gateway:
        host = gateway.url.removeprefix("http://")
        (tmp_path / "script.ts").write_text(
            f'import * as module from "{gateway.url}/runtime/tools.ts";\n' + SCRIPT % "module"
        )
        done = await run(
            deno(), "run", "--check", f"--allow-import={host}", f"--allow-net={host}",
            "--allow-env=AGENT_GATE_URL,AGENT_TOKEN", "--no-prompt", "script.ts",
            env=environment(tmp_path, gateway, DENO_AUTH_TOKENS=f"{TOKEN}@{host}"), cwd=str(tmp_path),
        )  # fmt: skip
        assert done.code == 0, done.err
        assert json.loads(done.out) == EXPECTED


async def test_deno_without_the_token_is_refused_the_module(tmp_path):
    async with serving(answering()) as gateway:
        host = gateway.url.removeprefix("http://")
        (tmp_path / "script.ts").write_text(f'import "{gateway.url}/runtime/tools.ts";')
        done = await run(
            deno(), "run", f"--allow-import={host}", "script.ts",
            env=environment(tmp_path, gateway), cwd=str(tmp_path),
        )  # fmt: skip
        assert done.code != 0
        assert "401" in done.err


@pytest.mark.parametrize("variable", ["AGENT_GATE_URL", "TOOLSCRIPT_GATEWAY_URL"])
async def test_node_runs_the_module_as_it_is(tmp_path, variable):
    async with serving(answering()) as gateway:
        written(tmp_path, "tools.ts", GITHUB)
        (tmp_path / "script.mts").write_text(SCRIPT % 'await import("./tools.ts")')
        env = quiet_environment(
            tmp_path, AGENT_TOKEN=TOKEN, **{variable: gateway.url.replace("http", "ws") + "/"}
        )
        done = await run(new_node(), "--no-warnings", "script.mts", env=env, cwd=str(tmp_path))
        assert done.code == 0, done.err
        assert json.loads(done.out) == EXPECTED


async def test_a_script_waits_while_a_person_is_asked(tmp_path):
    asked = asyncio.Event()
    gateway = answering()
    gateway.asked["github__create_issue"] = asked
    async with serving(gateway):
        written(tmp_path, "tools.ts", GITHUB)
        (tmp_path / "script.mts").write_text(
            'import { tools } from "./tools.ts";\n'
            'console.log((await tools.github.createIssue({ title: "x" })).number);\n'
        )
        env = environment(tmp_path, gateway)
        running = asyncio.create_task(
            run(new_node(), "--no-warnings", "script.mts", env=env, cwd=str(tmp_path))
        )
        await asyncio.wait_for(gateway.polled.wait(), PATIENCE)
        asked.set()
        done = await running
        assert (done.code, done.out) == (0, "7\n"), done.err
        assert gateway.requests[0].header(b"prefer") == b"wait=1"
        assert sum(request.method == "POST" for request in gateway.requests) == 1


async def test_a_script_that_stops_waiting_withdraws_its_call(tmp_path):
    gateway = answering()
    gateway.asked["github__create_issue"] = asyncio.Event()
    async with serving(gateway):
        written(tmp_path, "tools.ts", GITHUB)
        (tmp_path / "script.mts").write_text(
            'import { tools } from "./tools.ts";\n'
            "const stop = new AbortController();\nsetTimeout(() => stop.abort(), 100);\n"
            'try { await tools.github.createIssue({ title: "x" }, { signal: stop.signal }); }\n'
            "catch (error) { console.log(error.name); }\n"
        )
        env = environment(tmp_path, gateway)
        done = await run(new_node(), "--no-warnings", "script.mts", env=env, cwd=str(tmp_path))
        assert done.out == "AbortError\n", done.err
        assert gateway.withdrawn.is_set()


async def test_a_script_without_an_address_or_a_gateway_says_what_is_missing(tmp_path):
    written(tmp_path, "tools.ts", GITHUB)
    (tmp_path / "script.mts").write_text(
        'import { tools } from "./tools.ts";\n'
        "try { await tools.github.listIssues(); } catch (error) { console.log(error.code, error.message); }\n"
    )
    argv = (new_node(), "--no-warnings", "script.mts")
    unset = await run(*argv, env=quiet_environment(tmp_path), cwd=str(tmp_path))
    assert unset.out.startswith("UNREACHABLE Neither AGENT_GATE_URL nor")
    env = quiet_environment(tmp_path, AGENT_GATE_URL="http://127.0.0.1:9")
    away = await run(*argv, env=env, cwd=str(tmp_path))
    assert away.out.startswith("UNREACHABLE The gateway at http://127.0.0.1:9 cannot be reached")


async def test_a_script_may_name_its_own_key_and_call_a_tool_by_its_wire_name(tmp_path):
    async with serving(answering()) as gateway:
        written(tmp_path, "tools.ts", GITHUB)
        (tmp_path / "script.mts").write_text(
            'import { callTool, tools } from "./tools.ts";\n'
            'await tools.github.createIssue({ title: "x" }, { idempotencyKey: "once" });\n'
            'console.log(JSON.stringify(await callTool("github__create_issue", { title: "y" })));\n'
        )
        env = environment(tmp_path, gateway)
        done = await run(new_node(), "--no-warnings", "script.mts", env=env, cwd=str(tmp_path))
        assert (done.code, done.out) == (0, '{"number":7}\n'), done.err
        named, unnamed = (request.header(b"idempotency-key") for request in gateway.requests)
        assert named == b"once" != unnamed
