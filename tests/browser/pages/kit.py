"""What the saved pages are made of: words, a frame around each, and the script that says what can be acted on in it."""

import random
from pathlib import Path

HERE = Path(__file__).parent
VOCABULARY = [
    "river",
    "lamp",
    "garden",
    "window",
    "market",
    "bridge",
    "signal",
    "forest",
    "harbour",
    "letter",
    "engine",
    "museum",
    "paper",
    "station",
    "winter",
    "copper",
    "silent",
    "early",
    "narrow",
    "bright",
    "common",
    "distant",
    "modern",
    "quiet",
    "sudden",
    "open",
    "public",
    "second",
    "local",
    "measured",
    "builds",
    "carries",
    "follows",
    "gathers",
    "keeps",
    "moves",
    "opens",
    "reaches",
    "returns",
    "turns",
    "across",
    "after",
    "before",
    "between",
    "under",
]
PEOPLE = [
    "Ada",
    "Ben",
    "Chen",
    "Dora",
    "Emil",
    "Fatima",
    "Grace",
    "Hugo",
    "Ines",
    "Jonas",
    "Kira",
    "Linus",
    "Mara",
    "Nils",
    "Olga",
    "Pavel",
]


class Writer:
    """The same words for the same seed, so that a page is the same each time."""

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def words(self, count):
        return " ".join(self.draw.choices(VOCABULARY, k=count))

    def title(self, count=5):
        return self.words(count).capitalize()

    def sentence(self, count=14):
        return f"{self.title(count)}."

    def paragraph(self, sentences=4):
        return " ".join(self.sentence() for _ in range(sentences))

    def person(self):
        return self.draw.choice(PEOPLE)

    def number(self, low=1, high=999):
        return self.draw.randint(low, high)


def many(count, make, start=1):
    """What `make` says for each number, one after the other."""
    return "\n".join(make(number) for number in range(start, start + count))


def document(title, body, style="", script=""):
    """A whole page. Our script comes last: it marks what can be acted on once the page is built."""
    return f"""<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>
<meta name=viewport content="width=device-width"><style>
body{{font:14px/1.4 sans-serif;margin:12px}} ul{{padding-left:18px}} td,th{{padding:2px 6px}} .p{{cursor:pointer}}
.grid{{display:grid;grid-template-columns:repeat(4,1fr);gap:8px}} {style}</style></head><body>
{body}
<script>{script}</script><script>{(HERE / "marks.js").read_text()}</script></body></html>"""


def nav(label, *names):
    links = "".join(f'<li><a href="#{name.lower().replace(" ", "-")}">{name}</a></li>' for name in names)
    return f'<nav aria-label="{label}"><ul>{links}</ul></nav>'


def footer(*names):
    links = " ".join(f'<a href="#{name.lower()}">{name}</a>' for name in names)
    return f"<footer><p>{links}</p><p>All rights reserved by nobody in particular.</p></footer>"


def options(*names, chosen=None):
    return "".join(f"<option{' selected' if name == chosen else ''}>{name}</option>" for name in names)
