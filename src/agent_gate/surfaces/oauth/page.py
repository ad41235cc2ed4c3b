"""The few pages of a sign-in: no scripts, nothing foreign, in no frame."""

import html
from collections.abc import Mapping

from agent_gate.access.sign_in.redirects import destination, is_loopback
from agent_gate.access.sign_in.request import AskedFor
from agent_gate.approval.render import visible
from agent_gate.net.http import Header, Response
from agent_gate.net.scriptless import COLOURS, headers_for

STYLE = COLOURS + (
    "body{font:16px/1.5 system-ui,sans-serif;background:var(--ground);color:var(--ink);max-width:36rem;margin:0 auto;padding:1rem}"
    "dt{color:var(--soft);margin-top:.75rem}"
    "dd{margin:0;overflow-wrap:anywhere}.number{font-size:4rem;font-weight:700;letter-spacing:.1em;margin:.5rem 0}"
    ".warn{color:var(--you)}a{color:inherit}"
    "button{font:inherit;color:var(--ground);background:var(--ink);border:1px solid var(--ink);border-radius:6px;width:100%;min-height:2.75rem;margin-top:1.5rem;cursor:pointer}"
    "button.plain{color:var(--ink);background:none;border-color:var(--line);margin-top:.75rem}"
)
HEADERS = headers_for(STYLE)


def shown(text: str) -> str:
    """A stranger's text: nothing in it hides, and nothing is markup."""
    return html.escape(visible(text))


def page(status: int, title: str, body: str, headers: tuple[Header, ...] = (), refresh: str = "") -> Response:
    """`body` is HTML already."""
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
    view = (
        f'<meta name="viewport" content="width=device-width, initial-scale=1">{refresh}<style>{STYLE}</style>'
    )
    text = f"{head}{view}<main><h1>{html.escape(title)}</h1>{body}</main></html>"
    return Response(
        status, text.encode("utf-8", "replace"), (*HEADERS, *headers), b"text/html; charset=utf-8"
    )


def place(uri: str) -> str:
    """Where the answer will be sent, in words."""
    if is_loopback(uri):
        return "a program on the computer on which this browser runs"
    return destination(uri)


def consent_page(
    asked: AskedFor, fields: Mapping[str, str], cookie: Header, provider: str | None = None
) -> Response:
    """Who asks: where the answer goes first, then what the client calls itself, and that nobody checked that. With a
    `provider`, people can log in there."""
    claims = f"“{shown(asked.client_name)}”" if asked.client_name else "nothing"
    sees = ", ".join(asked.namespaces) if asked.namespaces is not None else "every source that it is given"
    local = (
        '<p class="warn">Any program on that computer can ask like this. Go on only if you started one just now.</p>'
        if is_loopback(asked.redirect_uri)
        else ""
    )
    facts = (
        f"<dl><dt>The answer will be sent to</dt><dd><strong>{shown(place(asked.redirect_uri))}</strong><br>"
        f"<small>{shown(asked.redirect_uri)}</small></dd>"
        f"<dt>The client calls itself</dt><dd>{claims} <small>(unverified)</small></dd>"
        f"<dt>It asks for</dt><dd>{shown(sees)}</dd></dl>"
    )
    hidden = "".join(
        f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
        for name, value in fields.items()
    )
    form = f'<form method="post" action="/authorize">{hidden}{ways_on(provider)}</form>'
    more = (
        "<p>With your login it comes in as your agent, for what your groups may see; anything else, people are asked "
        "about.</p>"
        if provider
        else "<p>Continue asks the people of this gateway. Nothing is decided on this page.</p>"
    )
    title = f"Let {visible(place(asked.redirect_uri))} come in?"
    return page(200, title, facts + local + more + form, (cookie,))


def ways_on(provider: str | None) -> str:
    """The buttons: by a login at the provider, where there is one, or by asking people."""
    if provider is None:
        return "<button>Continue</button>"
    return (
        f'<button name="way" value="provider">Log in with {shown(provider)}</button>'
        '<button class="plain" name="way" value="people">Ask the people of this gateway</button>'
    )


def leaving_page(url: str, provider: str) -> Response:
    """On to the provider. Not by a redirect: a browser follows none to elsewhere from a form of ours."""
    refresh = f'<meta http-equiv="refresh" content="0;url={html.escape(url)}">'
    link = f'<p><a href="{html.escape(url)}" rel="noreferrer">Go on to {shown(provider)}</a></p>'
    return page(200, f"Log in with {visible(provider)}", link, refresh=refresh)


def invited_page(issuer: str, cookie: Header) -> Response:
    body = (
        f"<p>This browser is invited. Now add <code>{issuer}/mcp</code> to your client, and sign in with this browser "
        "within a day.</p><p>Somebody still has to say yes.</p>"
    )
    return page(200, "You are invited", body, (cookie,))


def waiting_page(asked: AskedFor, number: str, address: str, link: str | None) -> Response:
    """The number, and where to say it; the page asks again by itself."""
    on_page = "the operator's page"
    if link:
        on_page = f'<a href="{html.escape(link)}" target="_blank" rel="noopener noreferrer">{on_page}</a>'
    body = (
        f'<p>Somebody has to say yes, with this number:</p><p class="number">{html.escape(number)}</p>'
        f"<p>Answer on {on_page}, where this gateway asks you (Telegram, Slack), or with "
        "<code>agent-gate approvals</code>. This page goes on by itself.</p>"
        f"<p>The answer will be sent to <strong>{shown(place(asked.redirect_uri))}</strong>.</p>"
    )
    refresh = f'<meta http-equiv="refresh" content="2;url={html.escape(address)}">'
    return page(200, "Waiting for a yes", body, refresh=refresh)


def fault_page(status: int, message: str, back: str | None = None) -> Response:
    """What went wrong. `back` is a link for the person to follow: nobody is sent anywhere by an error."""
    link = (
        f'<p><a href="{html.escape(back)}" rel="noreferrer">Tell {shown(place(back))}</a></p>' if back else ""
    )
    return page(status, "This sign-in cannot go on", f"<p>{shown(message)}.</p>{link}")
