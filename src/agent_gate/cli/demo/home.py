"""A small home-automation API with the REST shape of Home Assistant's `/api/`: states, services, events."""

import hmac
import time
from typing import Any
from urllib.parse import unquote

from agent_gate.core.strict import parse
from agent_gate.errors import GatewayError
from agent_gate.net.http import Request, Response, error_response, json_response

SWITCHES = {"turn_on": "on", "turn_off": "off", "lock": "locked", "unlock": "unlocked"}
FIRST_STATES: dict[str, tuple[str, dict[str, Any]]] = {
    "light.bedroom": ("off", {"friendly_name": "Bedroom"}),
    "light.kitchen": ("on", {"friendly_name": "Kitchen", "brightness": 180}),
    "lock.front_door": ("locked", {"friendly_name": "Front door"}),
    "sensor.living_room_temperature": ("21.4", {"friendly_name": "Living room", "unit_of_measurement": "°C"}),
    "sensor.washing_machine": ("idle", {"friendly_name": "Washing machine"}),
}


def stamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())


class Home:
    """The house: its entities, and a handler for HTTP requests with the right token."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()
        self.states: dict[str, dict[str, Any]] = {}
        for entity, (state, attributes) in FIRST_STATES.items():
            self._set(entity, state, attributes)

    def _set(self, entity: str, state: str, attributes: dict[str, Any]) -> dict[str, Any]:
        changed = {"entity_id": entity, "state": state, "attributes": attributes, "last_changed": stamp()}
        self.states[entity] = changed
        return changed

    async def handle(self, request: Request) -> Response:
        if not hmac.compare_digest(request.header(b"authorization") or b"", self._expected):
            return json_response(401, {"message": "Unauthorized"})
        try:
            return self._route(
                request.method, [unquote(part) for part in request.path.split("/")[1:]], request
            )
        except GatewayError as error:
            return error_response(error)

    def _route(self, method: str, parts: list[str], request: Request) -> Response:
        match method, parts:
            case "GET", ["api", ""] | ["api"]:
                return json_response(200, {"message": "API running."})
            case "GET", ["api", "states"]:
                return json_response(200, list(self.states.values()))
            case "GET", ["api", "states", entity] if entity in self.states:
                return json_response(200, self.states[entity])
            case "POST", ["api", "services", domain, service]:
                return json_response(200, self._service(domain, service, self._data(request)))
            case "POST", ["api", "events", event]:
                return json_response(200, {"message": f"Event {event} fired."})
        return json_response(404, {"message": "Entity not found."})

    def _data(self, request: Request) -> dict[str, Any]:
        value = parse(request.body) if request.body else {}
        return value if isinstance(value, dict) else {}

    def _service(self, domain: str, service: str, data: dict[str, Any]) -> list[dict[str, Any]]:
        """Apply a service to one entity, or to all of its domain; the changed states come back."""
        wanted = data.pop("entity_id", None)
        targets = (
            [wanted] if wanted else [entity for entity in self.states if entity.startswith(f"{domain}.")]
        )
        new_state = SWITCHES.get(service)
        return [
            self._set(
                entity,
                new_state or self.states[entity]["state"],
                {**self.states[entity]["attributes"], **data},
            )
            for entity in targets
            if entity in self.states
        ]
