"""The generated module against the real gateway with a real MCP server behind it."""

import asyncio
import json
import signal
import subprocess
import urllib.request
from contextlib import contextmanager

from tests.typescript.gateway_process import TOKEN, gateway_process
from tests.typescript.node_tools import deno, new_node, quiet_environment
from tests.typescript.standin import run
from tests.waiting import PATIENCE, until, wait_until

SCRIPT = """
import {{ tools, AgentGateError }} from "{url}/runtime/tools.ts";
const echo = await tools.everything.echo({{ message: "hi" }});
const weather = await tools.everything.getStructuredContent({{ location: "New York" }});
const sum = await tools.everything.getSum({{ a: 2, b: 3 }});
let code = "";
try {{
  // deno-lint-ignore no-explicit-any
  await tools.everything.getSum({{ a: "two" }} as any);
}} catch (error) {{
  if (error instanceof AgentGateError) code = error.code;
}}
console.log(JSON.stringify({{ echo, conditions: typeof weather.conditions, sum, code }}));
"""


async def test_a_deno_script_calls_tools_and_waits_for_a_person(tmp_path):
    with gateway_process(tmp_path) as gateway:
        host = gateway.url.removeprefix("http://")
        (tmp_path / "script.ts").write_text(SCRIPT.format(url=gateway.url))
        env = quiet_environment(
            tmp_path, AGENT_GATE_URL=gateway.url, AGENT_TOKEN=TOKEN, DENO_AUTH_TOKENS=f"{TOKEN}@{host}"
        )
        script = asyncio.create_task(
            run(
                deno(), "run", "--check", f"--allow-import={host}", f"--allow-net={host}",
                "--allow-env=AGENT_GATE_URL,AGENT_TOKEN", "--no-prompt", "script.ts",
                env=env, cwd=str(tmp_path),
            )
        )  # fmt: skip

        async def asked():
            assert not script.done(), script.result()
            return await asyncio.to_thread(gateway.waiting)

        waiting = await until(asked, "a question")
        await asyncio.to_thread(gateway.operator, "approve", waiting[-1]["id"])
        done = await script
        assert done.code == 0, done.err
        said = json.loads(done.out)
        assert said["echo"] == "Echo: hi"
        assert said["conditions"] == "string"
        assert "5" in said["sum"]
        assert said["code"] == "INVALID_ARGS"


SUM = """
import { tools } from "./tools.ts";
const stop = new AbortController();
process.stdin.once("data", () => stop.abort());
try {
  console.log(await tools.everything.getSum({ a: 2, b: 3 }, { signal: stop.signal }));
} catch (error) {
  console.log(error.name);
}
process.stdin.unref();
"""


@contextmanager
def asking(gateway, folder):
    """A script in Node whose call waits for a person."""
    request = urllib.request.Request(
        f"{gateway.url}/runtime/tools.ts", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        (folder / "tools.ts").write_bytes(answer.read())
    (folder / "script.mts").write_text(SUM)
    env = quiet_environment(folder, AGENT_GATE_URL=gateway.url, AGENT_TOKEN=TOKEN)
    argv = [new_node(), "--no-warnings", "script.mts"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, env=env, cwd=folder, text=True, **pipes) as script:
        try:
            wait_until(gateway.waiting, "the question")
            yield script
        finally:
            script.kill()


def test_a_script_that_stops_waiting_at_once_takes_its_question_back(tmp_path):
    with gateway_process(tmp_path) as gateway, asking(gateway, tmp_path) as script:
        assert script.communicate("stop\n", timeout=PATIENCE)[0] == "AbortError\n"
        assert gateway.waiting() == []


def test_a_call_that_waits_for_a_person_survives_the_gateways_death(tmp_path):
    with gateway_process(tmp_path) as gateway, asking(gateway, tmp_path) as script:
        wait_until(lambda: '"status": 202' in (tmp_path / "log").read_text(), "the call's id to be told")
        gateway.stop(signal.SIGKILL)
        gateway.start()
        [question] = gateway.waiting()
        gateway.operator("approve", question["id"])
        out = script.stdout.readline()
        assert "5" in out
        script.stdin.close()
