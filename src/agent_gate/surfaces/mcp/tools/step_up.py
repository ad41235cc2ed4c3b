"""An agent that signed in for some sources and calls a tool of another: its client can ask a person for more."""

from agent_gate.access.sign_in.request import scope_of
from agent_gate.core.call import Caller
from agent_gate.core.catalog import Catalog, wire_part
from agent_gate.mcp.errors import INVALID_PARAMS, RpcError


class ScopeNeeded(RpcError):
    """`scope` is all that the caller would need: what it has, and the source of the tool that it named."""

    def __init__(self, namespace: str, scope: str) -> None:
        super().__init__(
            INVALID_PARAMS, f"This sign-in does not cover {namespace}. Sign in again to ask for it"
        )
        self.scope = scope


def check_scope(caller: Caller, name: str, catalog: Catalog) -> None:
    """Raises `ScopeNeeded` where the tool's name begins with a source that there is and that the caller was not given.

    Whether the tool itself exists makes no difference, so nothing is learned of it.
    """
    if not caller.audience or caller.namespaces is None:
        return
    named, spaces = wire_part(name), {tool.namespace for tool in catalog.tools}
    begun_with = (space for space in spaces if named.startswith(f"{wire_part(space)}_"))
    namespace = max(begun_with, key=len, default=None)
    if namespace is not None and not caller.sees(namespace):
        raise ScopeNeeded(namespace, scope_of({*caller.namespaces, namespace}))
