"""What the doctor advises is done here to the letter, and the doctor does not say it again."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from tests import nursery
from tests.gateway import COMMAND, TOKEN, Api, Gateway, running
from tests.processes import free_port
from tests.waiting import PATIENCE, wait_until

CONFIG = """\
gateway: {{port: 0}}
admin: {{port: 0}}
agents: {{me: {{token: {token}}}}}
services:
  my lamp:
    url: {url}
    {auth}
    tools: {{lamp_on: {{description: "On", request: {{method: POST, path: /on}}}}}}
{more}
"""
RULES = 'rules:\n  - {pattern: "lamp_on*", action: ask}\n'
WELL = "auth: {{type: bearer, token: {}}}\n    health: {{path: /well}}"
Finding = dict[str, Any]


class Patient:
    """A folder with a configuration; the doctor is asked from another one, so that every command must name it."""

    def __init__(self, folder: Path, api: Api) -> None:
        self.folder, self.elsewhere, self.api = folder / "my gate", folder / "elsewhere", api
        self.config = self.folder / "config.yaml"
        self.env = {"PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}", "HOME": str(self.elsewhere)}
        for path in (self.folder, self.elsewhere):
            path.mkdir()

    def write(self, *, url: str = "", auth: str = "", more: str = "", rules: str = RULES) -> None:
        text = CONFIG.format(token=TOKEN, url=url or self.api.url, auth=auth, more=more)
        for name, written in (("config.yaml", text), ("permissions.yaml", rules)):
            part = self.folder / f"{name}.part"
            part.write_text(written)
            part.rename(self.folder / name)

    def type(
        self, line: str, *, stdin: str = "", cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A line as a person types it into a shell."""
        return subprocess.run(
            ["sh", "-c", line],
            cwd=cwd or self.elsewhere,
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def findings(self, *, here: Path | None = None) -> list[Finding]:
        named = [] if here else ["--config", str(self.config)]
        done = nursery.run(
            [COMMAND, "doctor", "--json", *named],
            cwd=here or self.elsewhere,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.stdout, done.stderr
        found: list[Finding] = json.loads(done.stdout)
        return found

    def finds(self, words: str, *, here: Path | None = None) -> Finding:
        def looked() -> Finding | None:
            return next((one for one in self.findings(here=here) if words in one["what"]), None)

        return wait_until(looked, f"the finding: {words}")  # type: ignore[no-any-return]

    def is_well_again(self, words: str, *, here: Path | None = None) -> bool:
        """Whether the finding is gone, when it is."""
        return wait_until(  # type: ignore[no-any-return]
            lambda: all(words not in one["what"] for one in self.findings(here=here)), f"no longer: {words}"
        )


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Patient]:
    with Api() as api:
        made = Patient(tmp_path, api)
        made.write()
        yield made


@contextmanager
def treated(patient: Patient) -> Iterator[Gateway]:
    with running(patient.folder, {}, "--insecure") as gateway:
        yield gateway


def test_a_folder_without_a_configuration(patient: Patient) -> None:
    empty = patient.elsewhere
    found = patient.finds("There is no config.yaml", here=empty)
    assert patient.type(found["fix"], stdin="nothing\nme\n", cwd=empty).returncode == 0
    assert patient.is_well_again("There is no config.yaml", here=empty)


def test_variables_that_nobody_set(patient: Patient) -> None:
    patient.write(auth='auth: {type: bearer, token: "${LAMP_TOKEN}${LAMP_MORE}"}')
    found = patient.finds("LAMP_TOKEN is not set")
    assert "does not start" in found["why"]
    names, file = re.fullmatch(r"Set (\w+ and \w+) in (.+)", found["fix"]).groups()  # type: ignore[union-attr]
    Path(file).write_text("".join(f"{name}=a-value\n" for name in names.split(" and ")))
    Path(file).chmod(0o600)
    assert patient.is_well_again("LAMP_TOKEN is not set")


def test_variables_that_only_the_gateway_has_are_no_problem(patient: Patient) -> None:
    patient.write(auth='auth: {type: bearer, token: "${LAMP_TOKEN}"}')
    with running(patient.folder, {}, "--insecure", env={"LAMP_TOKEN": "a-value-of-its-service"}):
        [found] = [one for one in patient.findings() if "LAMP_TOKEN" in one["what"]]
        assert (found["serious"], "The gateway that runs has them" in found["why"]) == (False, True)


def test_a_wrong_token_is_mended_where_the_file_takes_it_from(patient: Patient) -> None:
    kept = patient.folder / ".env"
    kept.write_text("LAMP_TOKEN=wrong-token\n")
    kept.chmod(0o600)
    patient.api.replies["/well"] = (401, {}, b"")
    patient.write(auth=WELL.format('"${LAMP_TOKEN}"'))
    with treated(patient):
        assert f"into LAMP_TOKEN in {kept}" in patient.finds("401")["fix"]


def test_a_reload_that_was_refused_is_told_once_and_not_as_in_force(patient: Patient) -> None:
    with treated(patient):
        patient.write(rules=RULES + "policy_tests:\n  - {tool: lamp_on, expect: deny}\n")
        patient.finds("policy test")
        [told] = wait_until(
            lambda: [one for one in patient.findings() if "still runs with the old one" in one["why"]],
            "the reload to be refused",
        )
        assert "policy test" in told["what"]
        assert not [one for one in patient.findings() if "runs with it" in one["why"]]


@pytest.mark.parametrize(
    ("settings", "words", "why"),
    [
        ({"more": "nonsense: 1\n"}, "nonsense", "does not start"),
        ({"rules": 'rules:\n  - {pattern: "lmap_on*", action: deny}\n'}, "matches no tool", "runs with it"),
        ({"more": "mcpServers:\n  fetch: {command: npx, args: [a-package]}\n"}, "fixed version", "It works"),
    ],
    ids=["a key that is none", "a rule that fits nothing", "a doubt"],
)
def test_a_line_that_is_wrong(patient: Patient, settings: dict[str, str], words: str, why: str) -> None:
    patient.write(**settings)
    found = patient.finds(words)
    assert why in found["why"]
    place = re.match(r"Edit (.+):(\d+):\d+", found["fix"])
    assert place, found["fix"]
    file, line = Path(place[1]), int(place[2])
    lines = file.read_text().splitlines()
    assert any(part in lines[line - 1] for part in ("nonsense", "lmap_on", "a-package"))
    del lines[line - 1]
    file.write_text("\n".join(lines))
    assert patient.is_well_again(words)


def test_a_file_that_others_can_read(patient: Patient) -> None:
    (patient.folder / ".env").write_text("A=1\n")
    (patient.folder / ".env").chmod(0o644)
    found = patient.finds("can be read by others")
    assert patient.type(found["fix"]).returncode == 0
    assert patient.is_well_again("can be read by others")


def test_a_token_that_can_be_guessed(patient: Patient) -> None:
    patient.config.write_text(patient.config.read_text().replace(TOKEN, "short-token"))
    found = patient.finds("has only 11 characters")
    longer = patient.type(found["fix"].partition("the output of: ")[2]).stdout.strip()
    patient.config.write_text(patient.config.read_text().replace("short-token", longer))
    assert patient.is_well_again("characters")


def ending_soon(made: Path) -> None:
    """The gateway's certificate as it is a week before its end."""
    old = x509.load_pem_x509_certificate(made.read_bytes())
    key = serialization.load_pem_private_key((made.parent / "ca.key").read_bytes(), None)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .issuer_name(old.issuer)
        .subject_name(old.subject)
        .public_key(old.public_key())
        .serial_number(old.serial_number)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=7))
    )
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    made.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))  # type: ignore[arg-type]


def test_a_certificate_that_ends_soon(patient: Patient) -> None:
    with running(patient.folder, {}):
        pass
    ending_soon(patient.folder / "data" / "tls" / "gateway.crt")
    found = patient.finds("The certificate ends in 7 days")
    assert patient.type(found["fix"]).returncode == 0
    with running(patient.folder, {}) as gateway:
        assert gateway.announced["fingerprint"]
        assert patient.is_well_again("The certificate ends")


def test_a_gateway_that_does_not_run(patient: Patient) -> None:
    found = patient.finds("No gateway runs here")
    env = {"PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}", "HOME": str(patient.elsewhere)}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        ["sh", "-c", f"exec {found['fix']}"], cwd=patient.elsewhere, env=env, stdout=quiet, stderr=quiet
    ) as process:
        try:
            assert patient.is_well_again("No gateway runs here")
        finally:
            process.terminate()


Cure = Callable[[Patient, str], None]


def right_token(patient: Patient, fix: str) -> None:
    assert "Put the right token for `my lamp`" in fix
    patient.api.reset()
    patient.write(auth=WELL.format("the-right-one"))


def right_address(patient: Patient, fix: str) -> None:
    assert "correct `url` for `my lamp`" in fix
    patient.write()


def key_given(patient: Patient, fix: str) -> None:
    done = patient.type(fix, stdin="a-key-of-the-lamp\n")
    assert done.returncode == 0, done.stderr


def edited(patient: Patient, fix: str) -> None:
    assert fix.startswith(f"Edit {patient.config}:")
    patient.write()


@pytest.mark.parametrize(
    ("settings", "words", "cure"),
    [
        ({"auth": WELL.format("wrong")}, "answered 401", right_token),
        ({"url": f"http://127.0.0.1:{free_port()}"}, "cannot be reached", right_address),
        ({"auth": "auth: {type: api-key, header_name: X-Key}"}, "needs a key", key_given),
        ({"more": "nonsense: 1\n"}, "nonsense", edited),
    ],
    ids=["a wrong token", "a wrong address", "a missing key", "a reload that was refused"],
)
def test_what_a_running_gateway_complains_of(
    patient: Patient, settings: dict[str, str], words: str, cure: Cure
) -> None:
    with treated(patient):
        if "wrong" in settings.get("auth", ""):
            patient.api.replies["/well"] = (401, {}, b"")
        patient.write(**settings)
        cure(patient, patient.finds(words)["fix"])
        assert patient.is_well_again(words)


def test_a_channel_that_is_away_leaves_the_terminal(patient: Patient) -> None:
    patient.write(more=f"channels: [{{type: webhook, url: 'http://127.0.0.1:{free_port()}/hook'}}]\n")
    with treated(patient) as gateway:
        gateway.call("lamp_on", wait=0)
        found = patient.finds("Questions do not get through")
        assert "lamp_on" in patient.type(found["fix"]).stdout


def test_a_service_that_went_away_is_found_before_a_call_is(patient: Patient) -> None:
    with ExitStack() as open_now:
        with Api() as lamp:
            patient.write(url=lamp.url, auth=WELL.format("a-token"))
            gateway = open_now.enter_context(treated(patient))
            wait_until(lambda: lamp.requests, "the gateway's first look")
            assert not [one for one in patient.findings() if "does not answer" in one["what"]]
        found = patient.finds(
            f"my lamp does not answer: {lamp.url.removeprefix('http://')} cannot be reached"
        )
        states = {one["key"]: one["state"] for one in gateway.admin.get("/api/status")["sources"]}
        assert (states["my lamp"], found["serious"]) == ("ready", True)
        right_address(patient, found["fix"])
        assert patient.is_well_again("does not answer")


def test_a_program_that_is_missing_is_told_once(patient: Patient) -> None:
    patient.write(more="servers: {box: {command: /nowhere/box}}")
    with treated(patient):
        assert patient.finds("box is failed")["serious"]
        assert len([one for one in patient.findings() if "/nowhere/box" in one["what"]]) == 1


def test_a_program_that_is_missing_is_no_small_thing(patient: Patient) -> None:
    patient.write(more="servers: {box: {command: /nowhere/box}}")
    found = patient.finds("/nowhere/box does not exist")
    assert found["why"] == "Its tools cannot be called"
