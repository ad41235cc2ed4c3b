"""Pages like those of the real web, written for the tests of snapshots and for the bench: each a name and its HTML."""

from tests.browser.pages import apps, reading, tools, trading

PAGES: dict[str, str] = {**reading.PAGES, **trading.PAGES, **apps.PAGES, **tools.PAGES}
