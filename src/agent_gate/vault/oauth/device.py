"""The device flow (RFC 8628): a short code that a person types in on any device, and patient polling."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from agent_gate.core.ports import Clock
from agent_gate.vault.oauth.clients import OAuthClient
from agent_gate.vault.oauth.discovery import AuthorizationServer
from agent_gate.vault.oauth.reach import AuthorizationFault, Reach, Web, check_url
from agent_gate.vault.oauth.tokens import DEVICE, OAuthRefusal, OAuthTokens, TokenEndpoint, prove, refusal_of

SLOWER_BY = 5.0
LONGEST_CODE = 64
Sleep = Callable[[float], Awaitable[object]]


class DeviceCode(msgspec.Struct, frozen=True, kw_only=True):
    """What the person needs (`user_code`, `verification_uri`), and what only we do (`device_code`)."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str | None = None
    expires_in: float = 600.0
    interval: float = 5.0

    def __repr__(self) -> str:
        return f"DeviceCode({self.user_code})"


async def start_device(
    web: Web,
    server: AuthorizationServer,
    client: OAuthClient,
    scope: str | None,
    reach: Reach,
    private_key: str | None = None,
    resource: str | None = None,
) -> DeviceCode:
    if server.device_url is None:
        raise AuthorizationFault(f"{server.issuer} offers no codes for devices")
    fields, headers = prove(client, server, private_key)
    asked = {"scope": scope, "resource": resource}
    form = {
        "client_id": client.client_id,
        **{name: value for name, value in asked.items() if value},
        **fields,
    }
    answer = await web.post_form(server.device_url, form, reach, "device endpoint", headers)
    body = answer.json("device endpoint")
    if answer.status != 200:
        raise refusal_of(body, server.issuer, answer.status)
    try:
        code = msgspec.convert(body, DeviceCode)
    except msgspec.ValidationError:
        raise AuthorizationFault(f"{server.issuer} gave no usable device code") from None
    return checked_device_code(code)


def checked_device_code(code: DeviceCode) -> DeviceCode:
    """Code and links go to a person, so they must be what they look like."""
    if not code.user_code.isascii() or not code.user_code.isprintable() or len(code.user_code) > LONGEST_CODE:
        raise AuthorizationFault("The device code is not one that a person could type")
    check_url(code.verification_uri, "page for the device code")
    if code.verification_uri_complete is not None:
        check_url(code.verification_uri_complete, "page for the device code")
    if not (0 < code.expires_in < 86_400 and 0 < code.interval < 3_600):
        raise AuthorizationFault("The device code has no sensible lifetime")
    return code


async def poll_device(
    endpoint: TokenEndpoint, code: DeviceCode, clock: Clock, sleep: Sleep = asyncio.sleep
) -> OAuthTokens:
    """Wait for the person: never faster than the server wants, never longer than the code lives."""
    deadline, interval = clock.monotonic() + code.expires_in, code.interval
    while clock.monotonic() + interval < deadline:
        await sleep(interval)
        try:
            return await endpoint.ask({"grant_type": DEVICE, "device_code": code.device_code})
        except OAuthRefusal as refusal:
            if refusal.error == "slow_down":
                interval += SLOWER_BY
            elif refusal.error != "authorization_pending":
                raise
    raise OAuthRefusal("Nobody entered the code in time", "expired_token")
