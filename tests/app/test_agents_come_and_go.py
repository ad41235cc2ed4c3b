"""Agents that are made for one job and revoked after it leave nothing behind."""

from pathlib import Path

from tests.gateway import Api
from tests.wsgate import started

from agent_gate.core.call import Caller
from agent_gate.mcp.revisions import NEWEST


async def test_an_agent_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    api = Api()
    async with started(tmp_path, api) as home:
        gateway = home.gateway

        def kept() -> set[str]:
            seen = {caller.name for caller in gateway.ways_in.view._seen}
            return (
                seen
                | gateway.ways_in.meta._browsers.names
                | gateway.ways_in.rest._documents.names
                | gateway.ways_in.mcp.lists._made.names
            )

        for number in range(3):
            await gateway.kept.keys.make("agent", f"job-{number}", {})
            gateway.refresh_agents()
            caller = gateway.ways_in.tokens.caller(f"job-{number}")
            assert isinstance(caller, Caller)
            gateway.ways_in.meta.browser(caller)
            gateway.ways_in.rest._openapi(caller)
            gateway.ways_in.mcp.lists.pages(caller, "full", NEWEST)
            assert f"job-{number}" in kept()
            await gateway.kept.keys.revoke("agent", f"job-{number}")
            gateway.refresh_agents()
        assert not {name for name in kept() if name.startswith("job-")}
    api.close()
