"""The generated module against the real gateway with a real MCP server behind it."""

import asyncio
import json

from gateway_process import TOKEN, gateway_process
from node_tools import deno, quiet_environment
from standin import run

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


def test_a_deno_script_calls_tools_and_waits_for_a_person(tmp_path):
    async def main() -> None:
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
            while not (waiting := await asyncio.to_thread(gateway.waiting)):
                assert not script.done(), script.result()
                await asyncio.sleep(0.05)
            await asyncio.to_thread(gateway.operator, "approve", waiting[-1]["id"])
            done = await script
            assert done.code == 0, done.err
            said = json.loads(done.out)
            assert said["echo"] == "Echo: hi"
            assert said["conditions"] == "string"
            assert "5" in said["sum"]
            assert said["code"] == "INVALID_ARGS"

    asyncio.run(main())
