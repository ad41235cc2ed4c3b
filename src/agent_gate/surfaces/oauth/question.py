"""A sign-in as a call, which is how it is decided on, asked about and recorded."""

from collections.abc import Sequence
from dataclasses import replace

from agent_gate.access.oidc.allowance import MOST_DAYS
from agent_gate.access.sign_in.consents import AgreedTerms, BegunSignIn
from agent_gate.access.sign_in.desk import WIRE
from agent_gate.access.sign_in.redirects import destination
from agent_gate.core.call import Call, Caller

ASKER = Caller(name="sign-in", kind="operator", max_pending=0, calls_per_minute=0)


def question(sign_in: BegunSignIn, address: str, terms: AgreedTerms | None = None) -> Call:
    """The call of a sign-in: on the widest terms that people could agree to, or on those that are settled."""
    asked, proved = sign_in.asked, sign_in.proved
    spaces: Sequence[str] | None = terms.namespaces if terms is not None else asked.namespaces
    return Call(
        tool=WIRE,
        id=sign_in.id,
        arguments={
            "destination": destination(asked.redirect_uri),
            "claims": asked.client_name,
            "client": asked.client,
            "client_id": asked.client_id,
            "redirect_uri": asked.redirect_uri,
            **({"namespaces": list(spaces)} if spaces is not None else {}),
            "mode": terms.mode if terms is not None else "full",
            "days": terms.days if terms is not None else MOST_DAYS,
            "address": address,
            "sign_in": sign_in.id,
            **({"person": proved.person} if proved is not None else {}),
        },
        caller=replace(ASKER, person=proved.person, groups=frozenset(proved.groups)) if proved else ASKER,
        surface="oauth",
        reads=True,
    )
