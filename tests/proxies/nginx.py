"""A real nginx: the one on this machine, or Debian's package, unpacked beside the other things that tests fetch."""

import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.debian import find_program
from tests.waiting import PATIENCE, wait_until

AROUND = """
daemon off; pid {folder}/pid; error_log stderr; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  {server}
}}
"""


def program() -> str:
    found = find_program("nginx", "nginx")
    if found is None:
        pytest.skip("there is no nginx here, and no Debian to fetch it from")
    return found


@contextmanager
def nginx(folder: Path, server: str, answers):
    """nginx with this `server` block, once `answers` is true."""
    folder.mkdir()
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder, server=server))
    with (folder / "stderr").open("wb") as said:
        process = subprocess.Popen([program(), "-p", folder, "-c", folder / "nginx.conf"], stderr=said)
        try:
            wait_until(lambda: process.poll() is not None or answers(), "an answer of nginx")
            assert process.poll() is None, (folder / "stderr").read_text()
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE)
