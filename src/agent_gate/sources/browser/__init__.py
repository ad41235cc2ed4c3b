"""A governed browser: tools over real pages, decided by what is on the page and not by what the agent says."""

from agent_gate.sources.browser.source import SOURCE

__all__ = ["SOURCE"]
