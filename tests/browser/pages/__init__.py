"""Pages like those of the real web, and a server that has them: `python -m tests.browser.pages` to look at them.

They are written by functions, so that a table of 500 rows takes a line, and are the same each time.
"""

from tests.browser.pages import reading, shopping, working
from tests.browser.pages.serving import served

PAGES = {**reading.PAGES, **shopping.PAGES, **working.PAGES}
TEXTS = {f"/{name}": make for name, make in PAGES.items()} | {
    f"/frame/{name}": make for name, make in working.FRAMES.items()
}

__all__ = ["PAGES", "TEXTS", "served"]
