"""Where an entry stands in its file is for people who mend it: moving it changes nothing that runs."""

from agent_gate.config.kinds import sections
from agent_gate.config.load import load

CONFIG = """\
services:
  lab:
    url: http://127.0.0.1:9
    tools: {ping: {request: {method: GET, path: /}}}
servers:
  git: {command: git-server}
hosts:
  memory: {socket: run/memory.sock}
browser: {}
web: {}
"""


def test_an_entry_that_only_moved_down_its_file_is_the_same(tmp_path):
    found = []
    for text in (CONFIG, f"# a new line\n{CONFIG}"):
        (tmp_path / "config.yaml").write_text(text)
        found.append(load(tmp_path / "config.yaml", None).settings)
    before, after = found
    told = {section.name: (section.of(before), section.of(after)) for section in sections()}
    assert all(old and old == new for old, new in told.values())
    lines = [(entry.where, new[key].where) for old, new in told.values() for key, entry in old.items()]
    assert all(was != now for was, now in lines)
