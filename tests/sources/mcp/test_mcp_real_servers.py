"""Servers that other people wrote, each in the era it speaks; installed on first use."""

import asyncio
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.servers import command
from tests.sources.mcp.upstreams import Conversation, connected, free_port, listening, modern, program
from tests.waiting import until

from agent_gate.errors import DependencyUnavailable

EVERYTHING_EXTRA = {"trigger-elicitation-request", "trigger-sampling-request", "get-roots-list"}


async def test_the_time_server_is_met_in_the_modern_era() -> None:
    async with connected(**program(command("time"))) as made:
        assert made.source.connections.main.welcome.revision.name == "2026-07-28"
        result = await made.call("get_current_time", {"timezone": "UTC"})
        assert msgspec.json.decode(result.body)["structuredContent"]["timezone"] == "UTC"
        assert not result.is_error


async def test_the_git_server_works_on_a_repository(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(tmp_path)], check=True)
    (tmp_path / "new.txt").write_text("x")
    async with connected(**program(command("git"), "--repository", str(tmp_path))) as made:
        assert "new.txt" in await made.text("git_status", {"repo_path": str(tmp_path)})
        assert (await made.call("git_status", {"repo_path": "/nowhere"})).is_error


async def test_the_filesystem_server_is_kept_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    async with connected(**program(command("filesystem"), str(tmp_path))) as made:
        assert made.source.connections.main.welcome.revision.name == "2025-11-25"
        assert await made.text("read_text_file", {"path": str(tmp_path / "note.txt")}) == "hello"
        assert (await made.call("read_text_file", {"path": "/etc/passwd"})).is_error


async def test_the_memory_server_gets_its_file_by_environment(tmp_path: Path) -> None:
    env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
    async with connected(**program(command("memory")), env=env) as made:
        entity = {"name": "Ada", "entityType": "person", "observations": ["likes tea"]}
        await made.call("create_entities", {"entities": [entity]})
    async with connected(**program(command("memory")), env=env) as made:
        assert "likes tea" in await made.text("read_graph")


async def test_a_server_of_the_oldest_era_lists_its_tools() -> None:
    async with connected(**program(command("github"))) as made:
        assert made.source.connections.main.welcome.revision.name == "2024-11-05"
        assert len(made.source.tools.definitions) == 26


async def test_the_sequential_thinking_server_answers() -> None:
    thought = {"thought": "a", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    async with connected(**program(command("sequential-thinking"))) as made:
        assert '"thoughtNumber": 1' in await made.text("sequentialthinking", thought)


async def exercise_everything(made) -> None:
    names = {definition.name for definition in made.source.tools.definitions}
    assert {"echo", "get-sum"} <= names
    assert "simulate-research-query" not in names
    assert await made.text("echo", {"message": "hi"}) == "Echo: hi"
    told = Conversation()
    slow = {"duration": 0.2, "steps": 2}
    await made.call("trigger-long-running-operation", slow, conversation=told, meta={"progressToken": "t"})
    progress = [params for method, params in told.notes if method == "notifications/progress"]
    assert [params["progress"] for params in progress] == [1, 2]
    assert {params["progressToken"] for params in progress} == {"t"}
    asked = Conversation()
    answer = await made.text("trigger-sampling-request", {"prompt": "capital?"}, conversation=asked)
    assert "Paris" in answer
    assert "sampling/createMessage" in [method for method, _ in asked.asked]


async def test_everything_over_stdio_is_asked_and_parked() -> None:
    async with connected(**program(command("everything"), "stdio")) as made:
        watching = asyncio.create_task(made.source.watch())
        await until(lambda: {d.name for d in made.source.tools.definitions} >= EVERYTHING_EXTRA)
        await exercise_everything(made)
        first = msgspec.json.decode(
            (await made.call("trigger-elicitation-request", conversation=modern())).body
        )
        assert first["resultType"] == "input_required"
        answers = {name: {"action": "decline"} for name in first["inputRequests"]}
        again = {"inputResponses": answers, "requestState": first["requestState"]}
        result = await made.text("trigger-elicitation-request", conversation=modern(), meta=again)
        assert "declined" in result
        watching.cancel()


@pytest.mark.parametrize(("transport", "path"), [("streamableHttp", "/mcp"), ("sse", "/sse")])
async def test_everything_over_http(transport: str, path: str) -> None:
    port = free_port()
    with listening([*command("everything"), transport], port, path, PORT=str(port)) as upstream:
        async with connected(url=upstream.url) as made:
            await exercise_everything(made)
            deadline = asyncio.get_running_loop().time() + 10
            prompt = await made.source.forward("prompts/get", {"name": "simple-prompt"}, None, deadline)
            assert b"messages" in prompt
            assert len(made.source.offers("resources")) == 7


async def test_a_real_server_that_restarts_is_noticed_and_met_again() -> None:
    port = free_port()
    argv = [*command("everything"), "streamableHttp"]
    with listening(argv, port, PORT=str(port)) as upstream:
        async with connected(url=upstream.url) as made:
            watching = asyncio.create_task(made.source.watch())
            assert await made.text("echo", {"message": "one"}) == "Echo: one"
            upstream.process.kill()
            with pytest.raises(DependencyUnavailable):
                await watching
            with listening(argv, port, PORT=str(port)):
                await made.source.connect()
                assert await made.text("echo", {"message": "two"}) == "Echo: two"
