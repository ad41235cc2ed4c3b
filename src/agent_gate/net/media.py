"""What a request says of its body and of the answer it wants, where only one form of either can be met."""

import re

from agent_gate.net.http import JSON, Request, Response, refusal

FORM = b"application/x-www-form-urlencoded"
ENCODINGS = frozenset({b"utf-8", b"utf8", b"us-ascii", b'"utf-8"'})
NEVER = re.compile(rb"q=0(\.0*)?")
ACCEPTED = frozenset({b"*/*", b"application/*", JSON})


def refuse_media(request: Request, wanted: bytes = JSON) -> Response | None:
    """A 415 for a body that is declared to be something else than `wanted`, or compressed; None lets it through.

    A body without a declaration is taken for what is wanted here.
    """
    declared = request.header(b"content-type")
    if declared is not None and declared != wanted and request.body and not _is(declared, wanted):
        return refusal(415, "INVALID_ARGS", _cure(wanted))
    coding = request.header(b"content-encoding")
    if coding is not None and coding.lower() != b"identity":
        return refusal(
            415, "INVALID_ARGS", "a compressed body is not read here; send it without Content-Encoding"
        )
    return None


def refuse_accept(request: Request) -> Response | None:
    """A 406 for a client that takes no JSON; None where it does, or says nothing."""
    accept = request.header(b"accept")
    if accept is None or accept in ACCEPTED or any(map(_takes_json, accept.split(b","))):
        return None
    return refusal(406, "INVALID_ARGS", "the answer is JSON; send Accept: application/json, or no Accept")


def _takes_json(media_range: bytes) -> bool:
    kind, *params = (part.strip().lower() for part in media_range.split(b";"))
    return kind in ACCEPTED and not any(map(NEVER.fullmatch, params))


def _is(declared: bytes, wanted: bytes) -> bool:
    kind, *params = (part.strip().lower() for part in declared.split(b";"))
    same = kind == wanted or (wanted == JSON and kind.startswith(b"application/") and kind.endswith(b"+json"))
    charsets = [param[8:] for param in params if param.startswith(b"charset=")]
    return same and all(charset in ENCODINGS for charset in charsets)


def _cure(wanted: bytes) -> str:
    kind = wanted.decode("ascii")
    return f"the body must be {kind} in UTF-8; send it with the header Content-Type: {kind}"
