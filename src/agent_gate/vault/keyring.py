"""The system's keyring, where the extra `keyring` is installed; else there is none."""

from importlib.util import find_spec

SERVICE = "agent-gate"


def has_keyring() -> bool:
    return find_spec("keyring") is not None


def read_keyring(name: str) -> str | None:
    """A password that a person stored with `keyring set agent-gate NAME`; a keyring that is locked or absent has none."""
    if not has_keyring():
        return None
    import keyring
    from keyring.errors import KeyringError

    try:
        found: str | None = keyring.get_password(SERVICE, name)
        return found
    except KeyringError:
        return None
