"""Which path belongs to which route of the admin API."""

import pytest

from agent_gate.net.http import HttpAnswer, Response
from agent_gate.surfaces.admin.routing import OperatorRequest, Route


async def answer(_ask: OperatorRequest) -> HttpAnswer:
    return Response(204)


def match(template: str, path: str) -> dict[str, str] | None:
    return Route("GET", template, answer, "").match(path)


def test_names_of_a_template_take_one_part_of_the_path_each_unquoted() -> None:
    assert match("/api/calls", "/api/calls") == {}
    assert match("/api/calls/{id}/timeline", "/api/calls/a%2Fb%20c/timeline") == {"id": "a/b c"}
    assert match("/v1/{kind}/{name}", "/v1/peers/{name}") == {"kind": "peers", "name": "{name}"}


@pytest.mark.parametrize(
    "path",
    ["/api/calls", "/api/calls/", "/api/calls/1/2", "/api/calls/1/", "//api/calls/1", "api/calls/1", ""],
)
def test_a_path_with_other_parts_more_or_fewer_is_anothers(path: str) -> None:
    assert match("/api/calls/{id}", path) is None


def test_a_dot_of_a_template_is_a_dot() -> None:
    assert match("/openapi.json", "/openapi.json") == {}
    assert match("/openapi.json", "/openapi-json") is None
