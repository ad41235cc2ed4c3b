"""Where everybody comes in: the public listener, the operator's, the admin socket, and the certificate they show."""

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

from agent_gate.config.settings import AdminSettings, Settings
from agent_gate.errors import ConfigError
from agent_gate.net.descriptors import room_for
from agent_gate.net.forwarded import Proxies
from agent_gate.net.guard import HostGuard
from agent_gate.net.http import Handler
from agent_gate.net.limits import Limits
from agent_gate.net.server import Server, Upgrade
from agent_gate.net.tls.certificates import ensure_certificate
from agent_gate.net.tls.files import (
    CertificateFiles,
    named_certificate,
    renew,
    server_context,
)
from agent_gate.surfaces.oauth.open_to_all import is_open
from agent_gate.surfaces.requestlog import logged

log = logging.getLogger("agent_gate.app")
CALLBACK, CLIENT_DOCUMENT = "/auth/callback", "/auth/client.json"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
PUBLIC_PORT = "`gateway.port` in the configuration, or --port"
PAGE_PORT = "`admin.port` in the configuration, or --admin-port"


def opened_at(host: str, port: int, *, secure: bool) -> str:
    """The address of a listener as people open it on this machine."""
    name = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104
    return f"{'https' if secure else 'http'}://{f'[{name}]' if ':' in name else name}:{port}"


def outside_host(url: str, key: str = "admin.public_url") -> str:
    """The host, with its port where it has one, under which people reach the page."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{key}: {url!r} is no address; write one such as https://gate.example.ts.net")
    return parts.netloc


class Listeners:
    """They stay where the settings of the start put them; names and certificate follow a reload."""

    def __init__(self, settings: Settings, folder: Path, *, insecure: bool) -> None:
        self._at_start, self._folder, self._insecure = settings, folder, insecure
        self._context: SSLContext | None = None
        self._up: list[Server] = []
        self._public_url = settings.admin.public_url
        self._callback_url = settings.admin.callback_url
        self._client_document_url = settings.admin.client_document_url
        self._auth = settings.auth
        self.certificate: CertificateFiles | None = None
        self._peers_url: str | None = None

    async def start(
        self, public: Handler, upgrade: Upgrade, page: Handler, socket: Handler, socket_upgrade: Upgrade
    ) -> None:
        settings, admin, limits = self._at_start, self._at_start.admin, self._at_start.limits
        certificate = self.certificate = self._certificate(settings)
        if certificate is not None:
            self._context = server_context(certificate.cert, certificate.key)
        bounds = Limits(body_bytes=limits.max_request_bytes, connections=room_for(limits.max_connections))
        nobody, apart = HostGuard((), 0), Proxies(settings.gateway.proxies).tell_apart
        self.public = Server(
            apart(logged(public)), upgrade=apart(upgrade), guard=nobody, limits=bounds, ssl=self._context
        )
        # Plain on loopback, where browsers distrust private certificates; TLS elsewhere.
        secure = None if admin.tls == "off" or admin.host in LOOPBACK else self._context
        self.page = Server(apart(page), guard=nobody, ssl=secure)
        self.socket = Server(socket, upgrade=socket_upgrade)
        gateway = settings.gateway
        await self.public.start(gateway.host, gateway.port, shared=gateway.reuse_port, chosen_by=PUBLIC_PORT)
        self._up.append(self.public)
        self.public.guard = self._public_guard(settings, certificate)
        await self.socket.start_unix(admin.socket)
        self._up.append(self.socket)
        await self._start_page(admin)
        self.page.guard = self._page_guard(settings, certificate)

    async def _start_page(self, admin: AdminSettings) -> None:
        try:
            await self.page.start(admin.host, admin.port, chosen_by=PAGE_PORT)
        except ConfigError as error:
            if admin.port != AdminSettings().port:
                raise
            log.warning("The page's usual port is taken; it gets another", extra={"why": error.message})
            await self.page.start(admin.host, 0)

    def take_over(self, settings: Settings) -> None:
        """Show the certificate of these settings and answer to their names; a `ConfigError` changes nothing."""
        certificate = self._certificate(settings)
        public = self._public_guard(settings, certificate)
        page = self._page_guard(settings, certificate)
        if certificate is not None and self._context is not None:
            renew(self._context, certificate.cert, certificate.key)
            self.certificate = certificate
        self.public.guard, self.page.guard = public, page
        self._public_url = settings.admin.public_url
        self._callback_url = settings.admin.callback_url
        self._client_document_url = settings.admin.client_document_url
        self._auth = settings.auth

    def _certificate(self, settings: Settings) -> CertificateFiles | None:
        if self._insecure:
            return None
        tls = settings.gateway.tls
        if tls.cert is not None and tls.key is not None:
            return named_certificate(tls.cert, tls.key)
        return ensure_certificate(self._folder / "tls", [settings.gateway.host, *tls.names])

    def _public_guard(self, settings: Settings, certificate: CertificateFiles | None) -> HostGuard:
        auth = settings.auth
        also = [outside_host(auth.public_url, "auth.public_url")] if auth.public_url else []
        guard = self._guard(self.public, self._at_start.gateway.host, settings, certificate, also)
        if auth.sign_in:
            guard.any_origin = is_open
        return guard

    def _page_guard(self, settings: Settings, certificate: CertificateFiles | None) -> HostGuard:
        also = [outside_host(settings.admin.public_url)] if settings.admin.public_url else []
        callback = settings.admin.callback_url
        named = (
            (frozenset({CALLBACK, CLIENT_DOCUMENT}), outside_host(callback, "admin.callback_url"))
            if callback
            else None
        )
        return self._guard(self.page, self._at_start.admin.host, settings, certificate, also, named)

    def _guard(
        self,
        server: Server,
        host: str,
        settings: Settings,
        certificate: CertificateFiles | None,
        also: Sequence[str] = (),
        elsewhere: tuple[frozenset[str], str] | None = None,
    ) -> HostGuard:
        """A listener answers to loopback, its own address, the certificate's names, and those allowed."""
        gateway = settings.gateway
        names = [host, server.address, *gateway.tls.names, *(certificate.names if certificate else ())]
        return HostGuard(names, server.port, [*gateway.allowed_hosts, *also], elsewhere)

    def url(self) -> str:
        return opened_at(self._at_start.gateway.host, self.public.port, secure=self.public.secure)

    def issuer(self) -> str | None:
        """Who gives tokens to clients that sign in: the address that the configuration gives, or where the public
        listener is on this machine; None where nobody can."""
        if not self._auth.sign_in:
            return None
        if self._auth.public_url:
            return self._auth.public_url.rstrip("/")
        return self.url() if self._up else None

    def page_url(self) -> str:
        return opened_at(self._at_start.admin.host, self.page.port, secure=self.page.secure)

    def people_url(self) -> str:
        """Where people reach the page: the address that the configuration gives for it, or else where it listens."""
        return self._public_url.rstrip("/") if self._public_url else self.page_url()

    def callback_url(self) -> str:
        """Where a browser comes back to after a sign-in: as configured, or this machine by the name that servers allow
        for it."""
        scheme = "https" if self.page.secure else "http"
        return self._callback_url or f"{scheme}://localhost:{self.page.port}{CALLBACK}"

    def client_document_url(self) -> str | None:
        """Where authorization servers read who the gateway is; None where it has no public address."""
        callback = self._callback_url or ""
        public = callback.startswith("https://") and callback.endswith(CALLBACK)
        beside = f"{callback.removesuffix(CALLBACK)}{CLIENT_DOCUMENT}" if public else None
        return self._client_document_url or beside

    @property
    def fingerprint(self) -> str | None:
        return self.certificate.fingerprint if self.certificate else None

    def announce_peers(self, url: str | None) -> None:
        """Paired components have a listener of their own, at this address."""
        self._peers_url = url

    def announcement(self) -> dict[str, Any]:
        """The one line `serve` prints once they are up."""
        return {
            "url": self.url(),
            "admin": self.page_url(),
            "socket": str(self._at_start.admin.socket),
            "pid": os.getpid(),
            "fingerprint": self.fingerprint,
            **({"peers": self._peers_url} if self._peers_url else {}),
        }

    async def drain(self, seconds: float) -> None:
        """Answer what is under way on the public listener for so long, then close them all."""
        await self.public.drain(seconds)
        await asyncio.gather(self.socket.drain(0.5), self.page.drain(0.5))

    async def drop(self) -> None:
        """Close at once those that a start which failed had brought up."""
        for server in self._up:
            await server.drain(0)
