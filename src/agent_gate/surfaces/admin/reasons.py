"""Why calls did not go well, in words for people who know no codes."""

SAYS = {
    "UPSTREAM_ERROR": "The source answered with an error",
    "TIMEOUT": "The source took too long",
    "DEPENDENCY_UNAVAILABLE": "The source, or the store, could not be reached",
    "OUTCOME_UNKNOWN": "The connection broke, and nobody knows whether it ran",
    "INVALID_ARGS": "The arguments do not fit the tool",
    "TOOL_NOT_FOUND": "There is no such tool for this agent",
    "FORBIDDEN": "A rule denies it",
    "RATE_LIMITED": "The agent called too often",
    "UNAUTHORIZED": "A credential was not taken",
    "APPROVAL_DENIED": "A person said no",
    "APPROVAL_TIMEOUT": "Nobody answered in time",
    "PAIRING_REQUIRED": "The machine is not paired, or not any more",
    "PAIRING_FAILED": "The machine could not prove who it is",
    "INTERNAL": "A fault of the gateway's own",
    "denied": "A person said no",
    "expired": "Nobody answered in time",
    "unknown": "The connection broke, and nobody knows whether it ran",
}
