"""Which Host and Origin are answered, and how failed logins slow down."""

import json

import pytest

from agent_gate.errors import ConfigError
from agent_gate.net.guard import Backoff, HostGuard
from agent_gate.net.http import Request

GUARD = HostGuard(["192.168.1.5", "gate.local", "fe80::1"], 8443, ["proxy.example.com", "other.example:9000"])


def check(host: bytes | None, origin: bytes | None = None) -> int:
    headers = [] if host is None else [(b"host", host)]
    if origin is not None:
        headers.append((b"origin", origin))
    refused = GUARD.check(Request("GET", b"/", dict(headers)))
    return 200 if refused is None else refused.status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"127.0.0.1", 200),
        (b"127.0.0.1:8443", 200),
        (b"localhost:8443", 200),
        (b"LocalHost", 200),
        (b"[::1]:8443", 200),
        (b"[fe80::1]", 200),
        (b"192.168.1.5:8443", 200),
        (b"gate.local", 200),
        (b"proxy.example.com", 200),
        (b"other.example:9000", 200),
        (b"other.example", 403),
        (b"127.0.0.1:80", 403),
        (b"127.0.0.2", 403),
        (b"evil.com", 403),
        (b"localhost.evil.com", 403),
        (b"localhost.", 403),
        (b"0.0.0.0:8443", 403),
        (b"", 400),
        (None, 400),
        (b"x/health?", 400),
        (b"localhost:8443@evil.com", 400),
        (b"localhost, evil.com", 400),
        (b"localhost:", 400),
        (b"localhost:99999999", 400),
        (b"\xff", 400),
    ],
)
def test_only_exact_hosts_are_answered(host: bytes | None, status: int) -> None:
    assert check(host) == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        (b"http://localhost:8443", 200),
        (b"https://127.0.0.1:8443", 200),
        (b"https://proxy.example.com", 200),
        (b"null", 403),
        (b"", 403),
        (b"https://evil.com", 403),
        (b"http://localhost.evil.com", 403),
        (b"http://localhost:3000", 403),
        (b"file://localhost:8443", 403),
        (b"http://localhost:8443/", 403),
    ],
)
def test_only_no_origin_or_an_own_one_is_answered(origin: bytes | None, status: int) -> None:
    assert check(b"localhost:8443", origin) == status


def test_a_refusal_says_what_to_configure_and_shows_no_control_characters() -> None:
    refused = GUARD.check(Request("GET", b"/", {b"host": b"my-box.lan"}))
    assert refused is not None
    error = json.loads(refused.body)["error"]
    assert error["code"] == "FORBIDDEN"
    assert "my-box.lan" in error["message"]
    assert "gateway.allowed_hosts" in error["message"]


@pytest.mark.parametrize("entry", ["https://gate.example.com", "*", "gate.example.com/", "", "ä..b"])
def test_an_allowed_host_that_no_request_could_name_is_refused_in_words(entry: str) -> None:
    with pytest.raises(ConfigError, match="is not a host"):
        HostGuard((), 8443, [entry])


def test_the_wildcard_address_is_never_a_host() -> None:
    assert not any(
        b"0.0.0.0" in host or host.startswith(b"[::]") for host in HostGuard(["0.0.0.0", "::"], 1).hosts
    )


def test_ten_failures_in_a_minute_close_the_door_for_the_rest_of_it() -> None:
    backoff = Backoff()
    for n in range(10):
        assert backoff.wait("10.0.0.1", 100.0 + n) == 0
        backoff.failed("10.0.0.1", 100.0 + n)
    assert backoff.wait("10.0.0.1", 110.0) == 50.0
    assert backoff.wait("10.0.0.2", 110.0) == 0
    assert backoff.wait("10.0.0.1", 160.0) == 0
    backoff.failed("10.0.0.1", 161.0)
    assert backoff.wait("10.0.0.1", 161.0) == 0


def test_a_login_that_succeeds_forgets_the_failures() -> None:
    backoff = Backoff(limit=1)
    backoff.failed("a", 0.0)
    backoff.succeeded("a")
    assert backoff.wait("a", 0.0) == 0


def test_failures_are_remembered_for_a_bounded_number_of_addresses() -> None:
    backoff = Backoff(limit=1, capacity=100)
    for n in range(1000):
        backoff.failed(str(n), 0.0)
    assert sum(backoff.wait(str(n), 0.0) > 0 for n in range(1000)) == 100
    assert backoff.wait("999", 0.0) > 0
