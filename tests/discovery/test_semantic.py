import subprocess
import sys

import pytest
from tests.discovery.tools import HOME, catalog
from tests.waiting import PATIENCE

from agent_gate.discovery.rank import Index
from agent_gate.discovery.semantic import load


def test_discovery_works_where_numpy_is_not_installed():
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "import agent_gate.discovery.browse, agent_gate.discovery.meta, agent_gate.discovery.economy\n"
        "import agent_gate.results.envelope, agent_gate.results.views\n"
        "assert 'agent_gate.discovery.minilm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


class Colours:
    """An encoder that knows one thing: scarlet means chart."""

    def place(self, texts):
        class Space:
            def similarities(self, query):
                return [1.0 if "scarlet" in query and "chart" in text else 0.0 for text in texts]

        return Space()


def test_meaning_finds_what_words_do_not():
    home = catalog(HOME)
    assert not Index(home.tools, {}).search("scarlet", 1)
    (hit,) = Index(home.tools, {}, semantic=Colours()).search("scarlet", 1)
    assert hit.tool.alias == "sheets:create_chart"


def test_the_installed_encoder_gives_the_published_similarities():
    encoder = load()
    if encoder is None:
        pytest.skip("the semantic extra is not installed")
    space = encoder.place(["That is a happy dog", "That is a very happy person", "Today is a sunny day"])
    assert space.similarities("That is a happy person") == pytest.approx([0.695, 0.943, 0.257], abs=0.001)
