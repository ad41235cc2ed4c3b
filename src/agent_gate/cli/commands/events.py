"""`agent-gate events`: what happens, in the envelope that subscribers get it in."""

from pathlib import Path
from typing import Any

import click

from agent_gate.approval.render import visible
from agent_gate.cli.operator import REMOTE, admin_options, client_of, reporting
from agent_gate.cli.output import print_json, say

PUBLISHED = "/api/events/published"


def line(event: dict[str, Any]) -> str:
    payload, routing = event["payload"], event["routing"]
    what = payload.get("signature") or payload.get("component_id") or payload.get("tool_name") or ""
    return visible(f"{event['occurred_at']}  {event['event_type']}  {routing['agent_id']}  {what}".rstrip())


@click.command()
@click.option("--follow", is_flag=True, help="Go on with what happens next.")
@click.option(
    "--after", default="", help="The cursor of the last event that was heard; 0.0 is the beginning."
)
@admin_options
@click.pass_context
def command(
    ctx: click.Context,
    follow: bool,
    after: str,
    admin_socket: Path | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Print events: of this gateway on its admin socket, or as a paired subscriber hears them with --remote."""
    with reporting():
        path = "/v1/events" if REMOTE in ctx.meta and admin_socket is None else PUBLISHED
        path += f"?after={after}" if follow else f"?once=1&after={after or '0.0'}"
        for _kind, event in client_of(admin_socket, config).events(path, endless=follow):
            print_json(event) if as_json else say(line(event))
