"""OpenAPI documents: whatever is made of one is a tool file that loads, or the document is refused."""

from tests.fuzz.fuzzing import Target

from agent_gate.config.decode import Reading
from agent_gate.config.files.variables import Variables
from agent_gate.config.files.yamlfile import parse_yaml
from agent_gate.config.openapi.document import read_document
from agent_gate.config.openapi.toolfile import make, service_name
from agent_gate.config.services.tools import read_mapping
from agent_gate.errors import ConfigError


def run(data: bytes) -> None:
    try:
        document = read_document(data.decode(), "document.yaml")
        made = make(document, service_name(document), "tools.yaml")
    except (ConfigError, UnicodeDecodeError):
        return
    tools = parse_yaml(made.text, "tools.yaml").get("tools")
    if tools is not None and tools.value:
        read_mapping(tools, "service", "tools", Reading(Variables({})))


TARGET = Target("openapi_documents", run)
