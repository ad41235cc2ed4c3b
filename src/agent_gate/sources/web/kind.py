"""The kind `web`, which stands below the key `web:`. What reads pages is loaded where one is configured."""

from agent_gate.config.settings import Settings
from agent_gate.core.ports import Plan
from agent_gate.sources.toolbox import Toolbox
from agent_gate.sources.web.settings import WEB


class WebKind:
    name = "web"
    section = WEB

    def make(self, settings: Settings, toolbox: Toolbox) -> list[Plan]:
        configured = WEB.of(settings).values()
        if not configured:
            return []
        from agent_gate.sources.web.source import make_plan

        return [make_plan(web, toolbox) for web in configured]


SOURCE = WebKind()
