"""Prints the tests that failed in the last run, a line each, as pytest's own cache remembers them."""

import json
from pathlib import Path

REMEMBERED = Path(__file__).resolve().parents[1] / ".pytest_cache" / "v" / "cache" / "lastfailed"


def failed_tests(remembered: Path = REMEMBERED) -> list[str]:
    return sorted(json.loads(remembered.read_text())) if remembered.exists() else []


if __name__ == "__main__":
    print("\n".join(failed_tests()))  # noqa: T201 - a command
