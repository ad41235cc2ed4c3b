"""A real issuer of tokens for tests: its keys behind real HTTP, and tokens signed by them, or by whom it likes."""

import base64
import json
import time

from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry
from tests.gateway import Api

AUDIENCE = "https://gate.example"
EC, OTHER, RSA = ECKey.generate_key("P-256"), ECKey.generate_key("P-256"), RSAKey.generate_key(2048)
ALGORITHMS = {"EC": "ES256", "RSA": "RS256", "oct": "HS256", "OKP": "EdDSA"}


def part(value):
    """One part of a token."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def signed(head, claims, key):
    text = f"{part(head)}.{part(claims)}"
    return f"{text}.{part(JWSRegistry.algorithms[head['alg']].sign(text.encode(), key))}"


class TokenIssuer(Api):
    """`publish` says which keys are to be seen; `token` signs claims as a client of this issuer would get them."""

    def __init__(self):
        super().__init__()
        self.publish(first=EC)

    @property
    def jwks_url(self):
        return f"{self.url}/keys"

    def publish(self, **keys):
        self.keys = keys
        listed = [{**key.as_dict(private=False), "kid": kid, "use": "sig"} for kid, key in keys.items()]
        self.publish_as_it_is({"keys": listed})

    def publish_as_it_is(self, document, status=200):
        self.replies["/keys"] = (status, {}, json.dumps(document).encode())

    @property
    def fetches(self):
        return sum(1 for request in self.requests if request["path"] == "/keys")

    def claims(self, **more):
        now = int(time.time())
        said = {"iss": self.url, "aud": AUDIENCE, "sub": "deploy", "iat": now, "exp": now + 300} | more
        return {name: value for name, value in said.items() if value is not None}

    def token(self, kid="first", key=None, header=None, **claims):
        key = key or self.keys[kid]
        head = {"alg": ALGORITHMS[key.key_type], "kid": kid} | (header or {})
        return signed(
            {name: value for name, value in head.items() if value is not None}, self.claims(**claims), key
        )
