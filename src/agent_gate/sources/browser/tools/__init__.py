"""The tools of the browser, each declared where it is carried out."""

from agent_gate.sources.browser.tool import BrowserTool
from agent_gate.sources.browser.tools import acting, files, login, moving, seeing

TOOLS: dict[str, BrowserTool] = {
    tool.name: tool for tool in (*moving.TOOLS, *seeing.TOOLS, *acting.TOOLS, *files.TOOLS, *login.TOOLS)
}
