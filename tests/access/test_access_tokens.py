"""Agent tokens as they come in headers."""

from agent_gate.access.tokens import Credential, Tokens, digest
from agent_gate.core.call import Caller

TOKEN = "a-token-of-more-than-sixteen"


def test_a_header_is_remembered_but_never_a_padded_one() -> None:
    tokens = Tokens([Credential(digest(TOKEN), Caller(name="pi"))])
    plain = f"Bearer {TOKEN}".encode()
    for header in (plain, *(b"Bearer" + b" " * size + TOKEN.encode() for size in range(1000, 9000, 80))):
        assert tokens.from_header(header).name == "pi"
    assert list(tokens.remembered) == [plain]
