"""ContextForge before one upstream: starts it on SQLite, registers the upstream, and leaves a token in a file.

Run with the interpreter it is installed for: `contextforge.py PORT URL TOKEN_FILE`. Its rate limits are off.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

SECRET = "a-secret-for-measuring-and-nothing-else"
PASSWORD = "Only-For-Measuring-1"
SETTINGS = {
    "DATABASE_URL": "sqlite:///./mcp.db",
    "JWT_SECRET_KEY": SECRET,
    "AUTH_ENCRYPTION_SECRET": SECRET,
    "PLATFORM_ADMIN_PASSWORD": PASSWORD,
    "BASIC_AUTH_PASSWORD": PASSWORD,
    "DEFAULT_USER_PASSWORD": PASSWORD,
    "MCPGATEWAY_UI_ENABLED": "false",
    "LOG_LEVEL": "ERROR",
    "RATE_LIMITING_ENABLED": "false",
    "TOOL_RATE_LIMIT": "1000000",
    "SSRF_ALLOW_LOCALHOST": "true",
    "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
    "CACHE_TYPE": "memory",
}
PATIENCE = 90.0


def ask(port: str, path: str, token: str = "", body: object = None) -> bytes:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        answer: bytes = response.read()
        return answer


def wait_for(port: str) -> None:
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            ask(port, "/health")
            return
        except (urllib.error.URLError, OSError):
            if time.monotonic() > give_up:
                raise
            time.sleep(0.2)


def main() -> int:
    port, url, token_file = sys.argv[1:]
    python = Path(sys.executable)
    os.environ.update(SETTINGS)
    os.chdir(tempfile.mkdtemp(prefix="contextforge-"))
    child = subprocess.Popen([python.with_name("mcpgateway"), "--host", "127.0.0.1", "--port", port])
    try:
        wait_for(port)
        make = [
            python,
            "-m",
            "mcpgateway.utils.create_jwt_token",
            "--username",
            "admin@example.com",
            "--admin",
        ]
        made = subprocess.run(
            [*make, "--exp", "600", "--secret", SECRET], capture_output=True, check=True, text=True
        )
        token = made.stdout.split()[-1]
        ask(port, "/gateways", token, {"name": "up", "url": url, "transport": "STREAMABLEHTTP"})
        Path(token_file).write_text(token)
        return child.wait()
    finally:
        child.terminate()


if __name__ == "__main__":
    sys.exit(main())
