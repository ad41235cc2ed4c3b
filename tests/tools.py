"""Small builders for tests of pure parts."""

from agent_gate.core.catalog import Listing, build
from agent_gate.core.tool import Definition
from agent_gate.core.traits import Traits


def arg(**schema):
    return {"type": "string"} | schema


def yaml_tool(name, template="", properties=None, required=(), traits=None, **more):
    """A definition as a YAML file makes it."""
    properties = properties or {}
    schema = {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})
    return Definition(
        name=name,
        input_schema=schema,
        template=template,
        flat=True,
        strict=True,
        declared=frozenset(properties),
        traits=traits or Traits(trusted=True),
        **more,
    )


def catalog(*definitions, key="home", prefix=True):
    return build([Listing(key=key, namespace=key.lower(), definitions=definitions, prefix=prefix)])


IDENTIFIER = "^[a-z_][a-z0-9_]*(\\.[a-z0-9_]+)?$"
WORD = "^[a-z_][a-z0-9_]*$"
HOME_TOOLS = [
    yaml_tool("ha_get_state", "{entity_id}", {"entity_id": arg(pattern=IDENTIFIER)}, ["entity_id"]),
    yaml_tool("ha_get_states"),
    yaml_tool(
        "ha_call_service",
        "{domain}.{service}, {entity_id}",
        {"domain": arg(pattern=WORD), "service": arg(pattern=WORD), "entity_id": arg(pattern=IDENTIFIER)},
        ["domain", "service"],
    ),
    yaml_tool("ha_fire_event", "{event_type}", {"event_type": arg(pattern=WORD)}, ["event_type"]),
]
