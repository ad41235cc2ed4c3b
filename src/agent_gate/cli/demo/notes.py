"""A small MCP server of notes for the demo, which answers only those who signed in at its authorization server."""

from pathlib import Path
from typing import Any

from agent_gate.cli.demo.authority import SCOPE, NotesAuthority
from agent_gate.core.strict import MalformedJson, strict_json
from agent_gate.errors import GatewayError
from agent_gate.net.http import Request, Response, error_response, json_response

PATH = "/mcp"
RESOURCE = f"/.well-known/oauth-protected-resource{PATH}"
TITLE = {"title": {"type": "string", "description": "Title of the note."}}
TEXT = {"text": {"type": "string", "description": "What it says."}}


def tool(name: str, description: str, properties: dict[str, Any], *, reads: bool) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": list(properties)},
        "annotations": {"readOnlyHint": reads},
    }


TOOLS = [
    tool("list_notes", "The titles of your notes.", {}, reads=True),
    tool("read_note", "One of your notes.", TITLE, reads=True),
    tool("add_note", "Write a note, or replace the one with this title.", {**TITLE, **TEXT}, reads=False),
]


class Notes:
    """Notes of each person who signed in. `origin` is where it listens, once that is known."""

    def __init__(self, folder: Path, token_seconds: float) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.authority = NotesAuthority(folder / "notes.json", token_seconds)
        self._notes: dict[str, dict[str, str]] = {}

    @property
    def origin(self) -> str:
        return self.authority.issuer

    async def handle(self, request: Request) -> Response:
        try:
            if (answer := self.authority.handle(request)) is not None:
                return answer
            if request.path == RESOURCE:
                return json_response(200, self._description())
            return self._serve(request)
        except (GatewayError, MalformedJson) as error:
            return error_response(error) if isinstance(error, GatewayError) else json_response(400, {})

    def _description(self) -> dict[str, Any]:
        return {
            "resource": f"{self.origin}{PATH}",
            "authorization_servers": [self.origin],
            "scopes_supported": [SCOPE],
        }

    def _serve(self, request: Request) -> Response:
        scheme, _, token = (request.header(b"authorization") or b"").decode("latin-1").partition(" ")
        person = self.authority.person(token) if scheme == "Bearer" else None
        if person is None:
            challenge = f'Bearer resource_metadata="{self.origin}{RESOURCE}"'
            return json_response(401, {"error": "sign in"}, ((b"www-authenticate", challenge.encode()),))
        if request.method != "POST" or request.path != PATH:
            return json_response(405, {})
        message = strict_json(request.body)
        if not isinstance(message, dict) or "id" not in message:
            return Response(202, b"")
        answer = self._answer(str(message.get("method")), message.get("params") or {}, person)
        return json_response(200, {"jsonrpc": "2.0", "id": message["id"], **answer})

    def _answer(self, method: str, params: dict[str, Any], person: str) -> dict[str, Any]:
        if method == "initialize":
            about = {"name": "demo-notes", "title": "Notes", "version": "1"}
            version = params.get("protocolVersion")
            return {
                "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            }
        if method == "tools/list":
            return {"result": {"tools": TOOLS}}
        if method == "tools/call":
            text, failed = self._call(params.get("name"), params.get("arguments") or {}, person)
            return {"result": {"content": [{"type": "text", "text": text}], "isError": failed}}
        return {"error": {"code": -32601, "message": "Method not found"}}

    def _call(self, name: object, arguments: dict[str, Any], person: str) -> tuple[str, bool]:
        notes = self._notes.setdefault(person, {"Welcome": f"Hello {person}, these notes are yours alone."})
        title = str(arguments.get("title", ""))
        if name == "list_notes":
            return "\n".join(notes), False
        if name == "add_note":
            notes[title] = str(arguments.get("text", ""))
            return f"Noted: {title}", False
        return (notes[title], False) if title in notes else (f"There is no note named {title}", True)
