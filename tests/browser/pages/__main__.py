"""`python -m tests.browser.pages`: the saved pages, to look at in a browser of one's own."""

import time

from tests.browser.pages import PAGES, TEXTS, served

with served(TEXTS) as url:
    print("\n".join(f"{url}/{name}" for name in PAGES), flush=True)
    while True:
        time.sleep(3600)
