"""Prints the tests that failed in the last run, a line each, as pytest's own cache remembers them.

Files that could not be read as tests are not among them: trying them again alone proves nothing.
"""

import json
from pathlib import Path

REMEMBERED = Path(__file__).resolve().parents[1] / ".pytest_cache" / "v" / "cache" / "lastfailed"


def failed_tests(remembered: Path = REMEMBERED) -> list[str]:
    names = sorted(json.loads(remembered.read_text())) if remembered.exists() else []
    return names if all("::" in name for name in names) else []


if __name__ == "__main__":
    print("\n".join(failed_tests()))  # noqa: T201 - a command
