"""The certificate made at first start, TLS listeners, pinning, and the Unix socket."""

import asyncio
import os
import socket
import ssl
import stat
import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509 import verification
from cryptography.x509.oid import NameOID
from tests.net.rawhttp import GET, Client, connected, echo, serving
from websockets.asyncio.client import connect

from agent_gate.errors import ConfigError
from agent_gate.net.http import Request, Response, json_response
from agent_gate.net.pool import NotSent, Pool, Target
from agent_gate.net.server import Server
from agent_gate.net.tls import certificates
from agent_gate.net.tls.certificates import ensure_certificate
from agent_gate.net.tls.files import fingerprint, named_certificate, renew, server_context
from agent_gate.net.tls.trust import client_context, fingerprint_der, made_authority


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_certificate_is_made_once_with_a_private_key_and_all_names(tmp_path: Path) -> None:
    files = ensure_certificate(tmp_path / "tls", ["gate.local", "192.168.1.5"])
    assert (mode(files.cert.parent), mode(files.key)) == (0o700, 0o600)
    loaded = x509.load_pem_x509_certificate(files.cert.read_bytes())
    names = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "gate.local"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == [
        "127.0.0.1",
        "::1",
        "192.168.1.5",
    ]
    assert loaded.not_valid_after_utc - datetime.now(UTC) <= timedelta(days=825)
    assert ensure_certificate(tmp_path / "tls").fingerprint == files.fingerprint
    assert sorted(path.name for path in files.cert.parent.iterdir()) == [
        "ca.crt",
        "ca.key",
        "gateway.crt",
        "gateway.key",
    ]


def test_an_expired_certificate_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "LIFETIME", timedelta(seconds=-1))
    old = ensure_certificate(tmp_path)
    monkeypatch.undo()
    new = ensure_certificate(tmp_path)
    assert new.fingerprint != old.fingerprint
    assert ensure_certificate(tmp_path).fingerprint == new.fingerprint


def verified(ca: Path, cert: Path, name: str) -> list[x509.Certificate]:
    """The chain as a strict verifier sees it."""
    store = verification.Store([x509.load_pem_x509_certificate(ca.read_bytes())])
    leaf, *rest = x509.load_pem_x509_certificates(cert.read_bytes())
    verifier = verification.PolicyBuilder().store(store).build_server_verifier(x509.DNSName(name))
    return verifier.verify(leaf, rest)


def test_what_the_listener_shows_is_no_authority_and_is_below_the_one_that_clients_trust(
    tmp_path: Path,
) -> None:
    files = ensure_certificate(tmp_path, ["gate.local"])
    leaf, authority = x509.load_pem_x509_certificates(files.cert.read_bytes())
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert authority == x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    assert mode(tmp_path / "ca.key") == 0o600
    assert files.fingerprint == fingerprint_der(leaf.public_bytes(serialization.Encoding.DER))
    assert len(verified(tmp_path / "ca.crt", files.cert, "gate.local")) == 2
    assert made_authority(tmp_path) == tmp_path / "ca.crt"


def test_a_certificate_that_is_made_again_is_below_the_same_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "LIFETIME", timedelta(seconds=-1))
    old = ensure_certificate(tmp_path)
    monkeypatch.undo()
    ca = (tmp_path / "ca.crt").read_bytes()
    renewed = ensure_certificate(tmp_path)
    named = ensure_certificate(tmp_path, ["gäte.example", "192.168.1.5", "127.0.0.1"])
    assert len({old.fingerprint, renewed.fingerprint, named.fingerprint}) == 3
    assert ensure_certificate(tmp_path, ["gäte.example"]).fingerprint == named.fingerprint
    assert (tmp_path / "ca.crt").read_bytes() == ca
    assert verified(tmp_path / "ca.crt", named.cert, "xn--gte-qla.example")


def test_an_authority_that_would_end_before_what_it_signs_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "AUTHORITY_LIFETIME", timedelta(days=30))
    ensure_certificate(tmp_path)
    ca = (tmp_path / "ca.crt").read_bytes()
    monkeypatch.undo()
    renewed = ensure_certificate(tmp_path, ["gate.local"])
    assert (tmp_path / "ca.crt").read_bytes() != ca
    assert verified(tmp_path / "ca.crt", renewed.cert, "gate.local")


def test_a_certificate_of_an_earlier_version_is_kept_until_it_ends(tmp_path: Path) -> None:
    private = ec.generate_private_key(ec.SECP256R1())

    def install(ends: timedelta) -> str:
        name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "agent-gate")]), datetime.now(UTC)
        old = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(private.public_key())
        old = old.serial_number(7).not_valid_before(now - timedelta(days=9)).not_valid_after(now + ends)
        old = old.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        pem = old.sign(private, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        (tmp_path / "gateway.crt").write_bytes(pem)
        return fingerprint(pem.decode())

    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "gateway.key").write_bytes(private.private_bytes(*form))
    kept = install(timedelta(days=1))
    assert ensure_certificate(tmp_path, ["gate.local"]).fingerprint == kept
    assert made_authority(tmp_path) == tmp_path / "gateway.crt"
    ended = install(timedelta(days=-1))
    assert ensure_certificate(tmp_path, ["gate.local"]).fingerprint != ended
    assert made_authority(tmp_path) == tmp_path / "ca.crt"


def test_a_planted_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "gateway.key").symlink_to(victim)
    files = ensure_certificate(tmp_path)
    assert victim.read_text() == "mine"
    assert not files.key.is_symlink()


def test_a_file_without_certificate_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        fingerprint("nothing here")
    with pytest.raises(ConfigError):
        server_context(tmp_path / "no.crt", tmp_path / "no.key")
    with pytest.raises(ConfigError):
        client_context(ca=tmp_path / "no.crt")
    with pytest.raises(ConfigError):
        client_context(fingerprint="sha256:12")


@pytest.mark.parametrize(
    "data",
    [None, b"\xff\xfe\x00", b"-----BEGIN CERTIFICATE-----\nabc!\n-----END CERTIFICATE-----\n", b"nothing"],
)
def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path, data: bytes | None) -> None:
    cert, key = tmp_path / "my.crt", tmp_path / "my.key"
    if data is not None:
        cert.write_bytes(data)
    with pytest.raises(ConfigError, match=r"my\.crt"):
        named_certificate(cert, key)


def test_an_own_certificate_that_was_damaged_is_named_with_what_to_do(tmp_path: Path) -> None:
    files = ensure_certificate(tmp_path)
    files.cert.write_text("damaged")
    with pytest.raises(ConfigError, match=r"gateway\.crt.*Remove it"):
        ensure_certificate(tmp_path)


def test_a_locked_key_is_refused_and_nobody_is_asked_for_its_passphrase(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files = ensure_certificate(tmp_path)
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    files.key.write_bytes(locked)
    with pytest.raises(ConfigError, match="passphrase"):
        server_context(files.cert, files.key)
    assert capfd.readouterr() == ("", "")


def test_a_name_beyond_ascii_stands_in_the_certificate_as_on_the_wire(tmp_path: Path) -> None:
    files = ensure_certificate(tmp_path, ["gäte.example"])
    loaded = x509.load_pem_x509_certificate(files.cert.read_bytes())
    names = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "xn--gte-qla.example"]
    with pytest.raises(ConfigError, match=r"ä\.\.b"):
        ensure_certificate(tmp_path / "other", ["ä..b"])


async def test_requests_and_websockets_go_over_tls_with_the_made_certificate(tmp_path: Path) -> None:
    files = ensure_certificate(tmp_path)

    class Handler:
        def opened(self, ws: object) -> None: ...
        def message(self, ws: object, data: str | bytes) -> None:
            ws.send(data)  # type: ignore[attr-defined]

        def closed(self, ws: object, code: int, reason: str) -> None: ...

    async def handler(request: Request) -> Response:
        return json_response(200, request.secure)

    context = server_context(files.cert, files.key)
    async with serving(handler, ssl=context, upgrade=lambda request: Handler()) as server:
        trusting = client_context(ca=files.cert)
        async with connected(server, ssl=trusting, server_hostname="localhost") as client:
            for _ in range(2):
                await client.send(GET)
                assert (await client.answer()).body == b"true"
            await client.send(b"GET / HTTP/1.0\r\n\r\n")
            assert (await client.answer()).status == 200
            assert await client.ended()
        async with connect(f"wss://localhost:{server.port}/", ssl=trusting) as ws:
            await ws.send("secret")
            assert await ws.recv() == "secret"


async def test_a_renewed_certificate_takes_the_place_of_one_with_another_kind_of_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ensure_certificate(tmp_path / "first")
    monkeypatch.setattr(
        certificates.ec, "generate_private_key", lambda _curve: rsa.generate_private_key(65537, 2048)
    )
    second = ensure_certificate(tmp_path / "second")

    async def shown(server: Server) -> str:
        anyone = ssl.create_default_context()
        anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=anyone)
        writer.close()
        return fingerprint_der(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))

    context = server_context(first.cert, first.key)
    async with serving(ssl=context) as server:
        for one in (second, first):
            renew(context, one.cert, one.key)
            assert await shown(server) == one.fingerprint


@pytest.mark.parametrize(
    ("trust", "ok"), [("ca", True), ("fingerprint", True), ("wrong fingerprint", False), ("system", False)]
)
async def test_a_client_trusts_what_it_was_told_to_trust_and_nothing_else(
    tmp_path: Path, trust: str, ok: bool
) -> None:
    files = ensure_certificate(tmp_path)
    pin = {"fingerprint": files.fingerprint, "wrong fingerprint": "sha256:" + "0" * 64}.get(trust)
    reached: list[Request] = []

    async def handler(request: Request) -> Response:
        reached.append(request)
        return Response(200, b"{}")

    async with serving(handler, ssl=server_context(files.cert, files.key)) as server:
        context = client_context(ca=files.cert if trust == "ca" else None, fingerprint=pin)
        pool = Pool(context, fingerprint=pin)
        target = Target.parse(f"https://localhost:{server.port}")
        with nullcontext() if ok else pytest.raises(NotSent, match="localhost"):
            reply = await pool.request("GET", target, b"/", deadline=time.monotonic() + 5, max_bytes=100)
            assert reply.status == 200
        await pool.aclose()
    assert len(reached) == ok


async def test_a_name_that_the_certificate_does_not_have_is_refused(tmp_path: Path) -> None:
    files = ensure_certificate(tmp_path)

    async def localhost(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async with serving(ssl=server_context(files.cert, files.key)) as server:
        pool = Pool(client_context(ca=files.cert), resolve=localhost)
        target = Target.parse(f"https://other.example:{server.port}")
        try:
            with pytest.raises(NotSent, match="TLS"):
                await pool.request("GET", target, b"/", deadline=time.monotonic() + 5, max_bytes=100)
        finally:
            await pool.aclose()


async def test_old_tls_is_refused(tmp_path: Path) -> None:
    files = ensure_certificate(tmp_path)
    async with serving(ssl=server_context(files.cert, files.key)) as server:
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(ssl.SSLError):
            await asyncio.open_connection("127.0.0.1", server.port, ssl=old)


async def ask_unix(path: Path) -> bytes:
    client = Client(*await asyncio.open_unix_connection(str(path)))
    try:
        await client.send(GET)
        return (await client.answer()).body
    finally:
        await client.close()


async def test_the_unix_socket_is_private_and_tells_the_peers_uid(tmp_path: Path) -> None:
    path = tmp_path / "run" / "admin.sock"

    async def handler(request: Request) -> Response:
        return json_response(200, {"uid": request.uid, "peer": request.peer})

    async with serving(handler, path=path):
        assert (mode(path.parent), mode(path)) == (0o700, 0o600)
        assert await ask_unix(path) == b'{"uid":%d,"peer":""}' % os.getuid()
    assert not path.exists()


async def test_a_socket_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ConfigError, match="file/run"):
        await Server(echo).start_unix(tmp_path / "file" / "run" / "admin.sock")


async def test_a_gateway_that_ends_leaves_the_socket_of_its_successor_alone(tmp_path: Path) -> None:
    path = tmp_path / "run" / "admin.sock"
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def waiting(_request: Request) -> Response:
        asked.set()
        await go_on.wait()
        return Response(200)

    old = Server(waiting)
    await old.start_unix(path)
    client = Client(*await asyncio.open_unix_connection(path))
    await client.send(GET)
    await asked.wait()
    ending = asyncio.create_task(old.drain(10))
    await asyncio.sleep(0)
    async with serving(echo, path=path):
        go_on.set()
        await ending
        await client.close()
        assert path.is_socket()
    assert not path.exists()


async def test_a_stale_socket_is_replaced_but_a_live_one_never(tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    async with serving(path=path):
        with pytest.raises(ConfigError, match="another program is listening"):
            await Server(echo).start_unix(path)
        assert b"GET" in await ask_unix(path)


@pytest.mark.parametrize("what", ["symlink", "file", "open folder", "linked folder"])
async def test_a_socket_path_that_others_could_have_prepared_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "here" / "admin.sock"
    path.parent.mkdir(mode=0o700)
    if what == "symlink":
        path.symlink_to(tmp_path / "elsewhere")
    elif what == "file":
        path.write_text("data")
    elif what == "open folder":
        path.parent.chmod(0o777)
    else:
        (tmp_path / "link").symlink_to(path.parent)
        path = tmp_path / "link" / "admin.sock"
    with pytest.raises(ConfigError):
        async with serving(path=path):
            pass


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
async def test_a_socket_in_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    with pytest.raises(ConfigError, match="another user"):
        await Server(echo).start_unix(folder / "admin.sock")
