"""The `services:` mapping into `ServiceConfig`s with their tools."""

import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from agent_gate.config.decode import Reading, decode, existing
from agent_gate.config.doubts import warn_of_plain_http
from agent_gate.config.files.nodes import Mark, Node, fail, join, read_named
from agent_gate.config.services.requests import (
    CREDENTIAL,
    check_base,
    check_header_name,
    check_header_value,
    check_target,
)
from agent_gate.config.services.settings import AuthConfig, HealthCheckConfig, ServiceConfig, ToolDefinition
from agent_gate.config.services.tools import check_braces, read_tools
from agent_gate.config.signin import check_accounts, check_sign_in
from agent_gate.core.signature import placeholders
from agent_gate.errors import ConfigError
from agent_gate.net.auth import AUTH_TYPES
from agent_gate.net.tls.trust import client_context


def read_services(node: Node, reading: Reading) -> dict[str, ServiceConfig]:
    found = read_named(
        node, "services", lambda name, item: read_service(item, name, node.key_mark(name), reading)
    )
    refuse_duplicates(found)
    return found


def read_service(node: Node, name: str, mark: Mark, reading: Reading) -> ServiceConfig:
    path = join("services", name)
    service = decode(
        node,
        ServiceConfig,
        path,
        reading,
        name=name,
        where=str(mark),
        health=read_health(node.get("health"), join(path, "health"), reading),
        tools=read_tools(node.get("tools"), name, join(path, "tools"), reading),
    )
    check_service(service, node, path)
    if service.auth.type != "none" and service.handler == "http":
        warn_of_plain_http(node.get("url") or node, join(path, "url"), reading)
    ca = node.get("ca")
    if service.handler == "python" or ca is None or service.ca is None:
        return service
    return replace(service, ca_digest=read_ca(ca, service.ca, join(path, "ca"), reading))


def read_health(node: Node | None, path: str, reading: Reading) -> HealthCheckConfig:
    if node is None:
        return HealthCheckConfig()
    return decode(node, HealthCheckConfig, path, reading, configured=True)


def read_ca(node: Node, file: Path, path: str, reading: Reading) -> str:
    """The digest of the authorities' file, which must be one; a renewed file is another configuration."""
    existing(node.mark, file, path, reading)
    try:
        client_context(file)
        return sha256(file.read_bytes()).hexdigest()
    except (ConfigError, OSError) as error:
        fail(node.mark, path, str(error))


def check_service(service: ServiceConfig, node: Node, path: str) -> None:
    errors = node.get("errors")
    for i, item in enumerate(errors.value if errors and isinstance(errors.value, list) else []):
        check_message(item, join(join(path, "errors"), i))
    if service.handler == "python":
        if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", service.handler_class):
            fail(node.mark, join(path, "handler_class"), "expected module:Class")
        return
    if service.handler_class:
        fail(node.key_mark("handler_class"), join(path, "handler_class"), "only for handler: python")
    if not re.match(r"https?://[^/]", service.url):
        fail((node.get("url") or node).mark, join(path, "url"), "must start with http:// or https://")
    check_base(node.get("url") or node, join(path, "url"))
    check_auth(service, node, path)
    if (health := (node.get("health") or Node({}, node.mark)).get("path")) is not None:
        check_target(health, join(path, "health.path"))
    check_requests(service)


def check_auth(service: ServiceConfig, node: Node, path: str) -> None:
    needs = AUTH_TYPES[service.auth.type].needs if service.auth.type in AUTH_TYPES else ()
    for needed in needs:
        if not getattr(service.auth, needed):
            auth = node.get("auth") or node
            fail(auth.mark, join(path, "auth"), f'type: {service.auth.type} needs "{needed}"')
    written = node.get("auth")
    if written is not None:
        check_sign_in(service.auth, service.auth.type, written, join(path, "auth"))
    placed = node.get("credentials") or node
    check_accounts(
        service.credentials, service.auth.type, service.auth.token, placed, join(path, "credentials")
    )
    check_credential(service, written, join(path, "auth"))


def check_credential(service: ServiceConfig, node: Node | None, path: str) -> None:
    """A token read from a file often ends in a line break; without this, the service would just be away."""
    needs = AUTH_TYPES[service.auth.placed].needs
    name = node.get("header_name") if node is not None else None
    if "header_name" in needs and name is not None:
        check_header_name(service.auth.header_name, name.mark, join(path, "header_name"))
    token = node.get("token") if node is not None else None
    if "token" in needs and credential_header(service.auth) and token is not None:
        check_header_value(token, join(path, "token"), CREDENTIAL)


def credential_header(auth: AuthConfig) -> str:
    """The header that holds the credential, in lower case; empty where none does."""
    headers = AUTH_TYPES[auth.placed].prove(auth.identity("", "")).headers
    return headers[0][0].decode() if headers else ""


def check_requests(service: ServiceConfig) -> None:
    taken = credential_header(service.auth)
    for tool in service.tools:
        if tool.request is None:
            fail(Mark(tool.where), tool.name, 'the key "request" is missing; an HTTP tool needs one')
        for name in tool.request.headers:
            if name.lower() == taken:
                fail(Mark(tool.where), tool.name, f"the header {name} is the credential of {service.name}")


def check_message(node: Node, path: str) -> None:
    message = node.get("message")
    if message is None:
        return
    for name in placeholders(str(message.value)):
        if name not in ("status", "body"):
            fail(message.mark, join(path, "message"), f"{{{name}}} is not known; use {{status}} and {{body}}")
    check_braces(message, join(path, "message"))


def refuse_duplicates(services: Mapping[str, ServiceConfig]) -> None:
    """Tool names of services are used flat, so each exists once."""
    seen: dict[str, ToolDefinition] = {}
    for service in services.values():
        for tool in service.tools:
            other = seen.setdefault(tool.name, tool)
            if other is not tool:
                fail(
                    Mark(tool.where),
                    f"tools.{tool.name}",
                    f"{service.name} and {other.service_name} ({other.where}) both define this tool; "
                    "tool names must be unique",
                )
