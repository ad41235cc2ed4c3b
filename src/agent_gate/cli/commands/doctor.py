"""`agent-gate doctor`: look for problems, say why they matter, and fix what can be fixed."""

import sys
from pathlib import Path

import click

from agent_gate.cli.diagnosis import DoctorFinding, Here, diagnose
from agent_gate.cli.operator import (
    DEFAULT_SOCKET,
    AdminClient,
    admin_options,
    reaching,
    remember_typed,
    reporting,
    socket_of,
)
from agent_gate.cli.output import USUAL_CONFIG, print_json, say
from agent_gate.errors import ConfigError


def socket_or_usual(admin_socket: Path | None, config: Path | None) -> Path:
    """The gateway's socket; the usual one where the configuration cannot be read, which is a finding of its own."""
    try:
        return socket_of(admin_socket, config)
    except ConfigError:
        return DEFAULT_SOCKET if config is None else config.parent / DEFAULT_SOCKET


def mend(finding: DoctorFinding) -> bool:
    """Do what can be done; what this user may not do stays a problem, and says how it is fixed."""
    if finding.repair is None:
        return False
    try:
        finding.repair()
    except OSError as error:
        say(f"Not fixed: {finding.what} ({error.strerror})", err=True)
        return False
    return True


@click.command()
@click.option("--fix", is_flag=True, help="Do what can be done without you.")
@admin_options
def command(fix: bool, admin_socket: Path | None, config: Path | None, as_json: bool) -> None:
    """Look for problems with this installation."""
    with reporting():
        remember_typed({"--admin-socket": admin_socket, "--config": config})
        chosen = config or (USUAL_CONFIG if USUAL_CONFIG.exists() else None)
        here = Here(chosen, config, admin_socket)
        findings = list(diagnose(here, AdminClient(socket_or_usual(admin_socket, chosen))))
        repaired = [finding for finding in findings if fix and mend(finding)]
        if as_json:
            print_json([finding.shown() | {"fixed": finding in repaired} for finding in findings])
        for finding in [] if as_json else findings:
            mark = "fixed" if finding in repaired else "problem" if finding.serious else "note"
            say(reaching(f"{mark}: {finding.what}\n  why: {finding.why}\n  fix: {finding.fix}"))
        if not findings and not as_json:
            say("Everything looks well.")
        sys.exit(1 if any(finding.serious and finding not in repaired for finding in findings) else 0)
