"""The protocol's own words: members of `_meta`, methods that more than one module names, and notifications."""

from agent_gate import __version__

SELF: dict[str, object] = {"name": "agent-gate", "title": "agent-gate", "version": __version__}
"""Who we are, to clients and to servers."""

RESERVED = "io.modelcontextprotocol/"
META_VERSION = RESERVED + "protocolVersion"
META_CAPABILITIES = RESERVED + "clientCapabilities"
META_CLIENT = RESERVED + "clientInfo"
META_SERVER = RESERVED + "serverInfo"
META_LOG_LEVEL = RESERVED + "logLevel"
META_SUBSCRIPTION = RESERVED + "subscriptionId"
SAID_EACH_TIME = frozenset({META_VERSION, META_CAPABILITIES, META_CLIENT, META_LOG_LEVEL})
"""What a request of a revision without sessions says of its own connection."""

META_CHALLENGE = "mcp/www_authenticate"
"""Where ChatGPT reads a challenge that other clients read in the header of a 403."""

OURS = "agent-gate/"
META_TOOL = OURS + "tool-id"
META_ERROR = OURS + "error"
META_SOURCE = OURS + "source"
META_UNKNOWN = OURS + "unknown-arguments"
META_PENDING = OURS + "pending"
META_KEY = OURS + "idempotency-key"

INITIALIZE = "initialize"
DISCOVER = "server/discover"
PING = "ping"
CALL_TOOL = "tools/call"
LIST_TOOLS = "tools/list"
ELICIT = "elicitation/create"
LISTEN = "subscriptions/listen"
NAMED_BY = {CALL_TOOL: "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that says what a request is about, which a header repeats."""

INITIALIZED = "notifications/initialized"
CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
LOG = "notifications/message"
ELICITED = "notifications/elicitation/complete"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
TOOLS_CHANGED = "notifications/tools/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
RESOURCE_UPDATED = "notifications/resources/updated"

INPUT_REQUIRED = "input_required"
"""The `resultType` of an unfinished result: a question to the client."""
