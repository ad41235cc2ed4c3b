"""TLS between paired machines, and services on Unix sockets: who is let in, and what a handler is told of them."""

import os
import ssl
import stat
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from agent_gate.core.ports import SystemClock
from agent_gate.net.http import Request, Response
from agent_gate.net.pool import Lost, NotSent, Pool, Target, WholeReply
from agent_gate.net.server import Server
from agent_gate.net.tls.certificates import private_pem
from agent_gate.net.tls.mutual import KeyPair, mutual_client, mutual_server, own_server, unverified_client
from agent_gate.net.tls.trust import fingerprint_der
from agent_gate.net.unixpath import check_owner
from agent_gate.peers.authority import Authority, CertificateSubject, Leaf

NOW = SystemClock.now()
HOME, OTHER = Authority.new("home", NOW), Authority.new("home", NOW)
HOST, GATEWAY = CertificateSubject("tool_host", "memory"), CertificateSubject("gateway", "home")


def issued(
    by: Authority, subject: CertificateSubject, now: float = NOW, days: float = 30
) -> tuple[KeyPair, Leaf]:
    key = ec.generate_private_key(ec.SECP256R1())
    leaf = by.issue(key.public_key(), subject, now, timedelta(days=days))
    return KeyPair(leaf.pem, private_pem(key)), leaf


class Listening:
    """A host's listener that writes down what reached its handler."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.seen: list[Request] = []
        self.server = Server(self.handle, ssl=context)

    def handle(self, request: Request) -> Response:
        self.seen.append(request)
        return Response(200, b"{}")

    async def __aenter__(self) -> Self:
        await self.server.start("127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.drain(0)

    async def ask(self, context: ssl.SSLContext, fingerprint: str | None = None) -> WholeReply:
        pool = Pool(context, fingerprint=fingerprint)
        target = Target.parse(f"https://127.0.0.1:{self.server.port}")
        try:
            deadline = pool.loop.time() + 5
            return await pool.request("GET", target, b"/v1/tools", deadline=deadline, max_bytes=1000)
        finally:
            await pool.aclose()


async def test_a_handler_gets_the_certificate_of_every_request() -> None:
    (host, shown), (gateway, leaf) = issued(HOME, HOST), issued(HOME, GATEWAY)
    async with Listening(mutual_server(host, HOME.pem)) as listening:
        for _ in range(2):
            assert (await listening.ask(mutual_client(gateway, HOME.pem), shown.fingerprint)).status == 200
        found = [fingerprint_der(request.certificate) for request in listening.seen]
        assert found == [leaf.fingerprint] * 2


@pytest.mark.parametrize(
    "case", ["no certificate", "another authority", "expired", "not yet valid", "only for servers", "TLS 1.2"]
)
async def test_p23_whom_the_authority_does_not_vouch_for_reaches_no_handler(case: str) -> None:
    def client() -> ssl.SSLContext:
        if case == "no certificate":
            context = unverified_client()
        elif case == "another authority":
            context = mutual_client(issued(OTHER, GATEWAY)[0], HOME.pem)
        elif case == "expired":
            context = mutual_client(issued(HOME, GATEWAY, NOW - 86400 * 3, 1)[0], HOME.pem)
        elif case == "not yet valid":
            context = mutual_client(issued(HOME, GATEWAY, NOW + 86400)[0], HOME.pem)
        elif case == "only for servers":
            context = mutual_client(issued(HOME, HOST)[0], HOME.pem)
        else:
            context = mutual_client(issued(HOME, GATEWAY)[0], HOME.pem)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        return context

    host, _ = issued(HOME, HOST)
    async with Listening(mutual_server(host, HOME.pem)) as listening:
        with pytest.raises((NotSent, Lost)):
            await listening.ask(client())
        assert listening.seen == []


@pytest.mark.parametrize("case", ["another authority", "expired", "a client's", "another certificate"])
async def test_p23_p24_a_host_that_is_not_the_one_on_record_is_sent_nothing(case: str) -> None:
    made = {
        "another authority": lambda: issued(OTHER, HOST),
        "expired": lambda: issued(HOME, HOST, NOW - 86400 * 3, 1),
        "a client's": lambda: issued(HOME, CertificateSubject("subscriber", "memory")),
        "another certificate": lambda: issued(HOME, HOST),
    }
    (shown, leaf), (_, recorded) = made[case](), issued(HOME, HOST)
    pinned = recorded.fingerprint if case == "another certificate" else leaf.fingerprint
    async with Listening(mutual_server(shown, HOME.pem)) as listening:
        with pytest.raises(NotSent):
            await listening.ask(mutual_client(issued(HOME, GATEWAY)[0], HOME.pem), pinned)
        assert listening.seen == []


async def test_no_session_can_be_resumed() -> None:
    host, leaf = issued(HOME, HOST)
    context = mutual_client(issued(HOME, GATEWAY)[0], HOME.pem)
    async with Listening(mutual_server(host, HOME.pem)) as listening:
        await listening.ask(context, leaf.fingerprint)
        assert context.session_stats()["hits"] == 0
        assert listening.server.ssl is not None
        assert listening.server.ssl.num_tickets == 0


async def test_a_listener_shows_another_certificate_without_turning_anybody_away() -> None:
    (before, old), (after, new) = issued(HOME, HOST), issued(HOME, HOST)
    async with Listening(own_server(before)) as listening:
        await listening.ask(unverified_client(), old.fingerprint)
        assert listening.seen[0].certificate == b""
        await listening.server.show(mutual_server(after, HOME.pem))
        await listening.ask(mutual_client(issued(HOME, GATEWAY)[0], HOME.pem), new.fingerprint)
        assert listening.seen[1].certificate != b""


async def ask_unix(path: Path) -> WholeReply:
    pool = Pool()
    try:
        deadline = pool.loop.time() + 5
        return await pool.request("GET", Target.unix(path), b"/v1/tools", deadline=deadline, max_bytes=1000)
    finally:
        await pool.aclose()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a socket away")
@pytest.mark.parametrize("what", ["socket", "folder"])
async def test_a_socket_of_another_user_is_not_talked_to(tmp_path: Path, what: str) -> None:
    path = tmp_path / "theirs" / "host.sock"
    server = Server(lambda request: Response(200, request.target))
    await server.start_unix(path)
    try:
        os.chown(path if what == "socket" else path.parent, 12345, 12345)
        with pytest.raises(NotSent, match="belongs to another user"):
            await ask_unix(path)
    finally:
        await server.drain(0)


async def test_a_service_on_a_unix_socket_is_asked_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / ("long" * 30) / "host.sock"
    server = Server(lambda request: Response(200, request.target))
    await server.start_unix(path)
    try:
        assert (await ask_unix(path)).body == b"/v1/tools"
        path.parent.chmod(0o777)
        with pytest.raises(NotSent, match="others can write"):
            await ask_unix(path)
    finally:
        path.parent.chmod(0o700)
        await server.drain(0)
    with pytest.raises(NotSent):
        await ask_unix(path)
    path.write_text("no socket")
    with pytest.raises(NotSent, match="no socket"):
        await ask_unix(path)


@pytest.mark.parametrize(
    ("owner", "folders_owner", "mode", "says"),
    [
        (0, 0, 0o700, ""),
        (1000, 1000, 0o755, ""),
        (2000, 1000, 0o700, "belongs to another user"),
        (1000, 2000, 0o700, "belongs to another user"),
        (1000, 1000, 0o770, "others can write"),
        (1000, 0, 0o1777, ""),
    ],
)
def test_a_socket_that_somebody_else_could_have_put_there_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, owner: int, folders_owner: int, mode: int, says: str
) -> None:
    class Place:
        parent = SimpleNamespace(
            stat=lambda: SimpleNamespace(st_uid=folders_owner, st_mode=stat.S_IFDIR | mode)
        )

        def lstat(self) -> SimpleNamespace:
            return SimpleNamespace(st_uid=owner, st_mode=stat.S_IFSOCK | 0o600)

    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(PermissionError, match=says) if says else nullcontext():
        check_owner(Place())  # type: ignore[arg-type]
