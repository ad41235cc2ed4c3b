"""What many pages have: a frame around them, navigation, footers, and words to fill them with."""

from itertools import cycle, islice

WORDS = [
    "harbour",
    "lamp",
    "winter",
    "river",
    "market",
    "engine",
    "letter",
    "garden",
    "signal",
    "bridge",
    "copper",
    "window",
    "morning",
    "paper",
    "forest",
    "ladder",
    "kitchen",
    "silver",
    "station",
    "candle",
    "mountain",
    "thread",
    "orchard",
    "compass",
    "village",
    "blanket",
    "planet",
    "journal",
    "harvest",
    "mirror",
]
NAMES = (
    "Ada Brook",
    "Jonas Reed",
    "Mira Stone",
    "Tariq Lane",
    "Elin Moss",
    "Paulo Hart",
    "Noor Vale",
    "Iris Webb",
)


def words(count, start=0):
    return " ".join(islice(cycle(WORDS[start % len(WORDS) :] + WORDS), count)).capitalize()


def name(index):
    return NAMES[index % len(NAMES)]


def links(labels, base="/go"):
    return "".join(
        f'<li><a href="{base}/{index}?from=menu&ref={index}">{label}</a></li>'
        for index, label in enumerate(labels)
    )


def page(title, body, *, style="", script="", menu=(), footer=12):
    menu = menu or ("Home", "Explore", "Pricing", "Docs", "Blog", "Help", "Sign in")
    foot = links([f"{words(2, index)} {index}" for index in range(footer)], "/foot")
    return f"""<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>
<style>body{{font:14px sans-serif;margin:8px}}nav ul,footer ul{{display:flex;flex-wrap:wrap;gap:8px;list-style:none}}
table{{border-collapse:collapse}}td,th{{padding:2px 6px}}{style}</style></head><body>
<header><div class=top><div class=logo><a href=/><img alt="{title} logo" width=40 height=20 src=data:,></a></div>
<nav aria-label=Main><ul>{links(menu)}</ul></nav></div></header>
<main>{body}</main><footer><div><h2>More</h2><ul>{foot}</ul><p>© {title}. All rights reserved.</p></div></footer>
{f"<script>{script}</script>" if script else ""}</body></html>"""
