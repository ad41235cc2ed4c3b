"""Pages to read: news, an article, an encyclopedia, a forum, documentation, comments, search results."""

from tests.browser.pages.parts import links, name, page, words


def news():
    rows = "".join(
        f"<tr><td>{i}.</td><td><a href=/vote?id={i} title=upvote>▲</a></td><td><a href=https://site{i}.example/story/{i}>"
        f"{words(8, i)}</a> <span>(<a href=/from?site=site{i}.example>site{i}.example</a>)</span></td></tr>"
        f"<tr><td colspan=2></td><td>{40 + i} points by <a href=/user?id={i}>{name(i)}</a> {i} hours ago | "
        f"<a href=/hide?id={i}>hide</a> | <a href=/item?id={i}>{i * 3} comments</a></td></tr>"
        for i in range(1, 61)
    )
    return page("Daily list", f"<table>{rows}</table><a href=/news?p=2>More</a>")


def paper():
    cards = "".join(
        f"<article><a href=/world/{i}><img alt='{words(4, i)}' width=90 height=60 src=data:,></a><div><span>{words(1, i)}</span>"
        f"<h3><a href=/world/{i}>{words(9, i)}</a></h3><p>{words(24, i)}</p><div><span>By <a href=/by/{i}>{name(i)}</a></span>"
        f"<time>{i % 12 + 1} h</time><button aria-label='Save {i}'>Save</button><button>Share</button></div></div></article>"
        for i in range(48)
    )
    sections = ("World", "Politics", "Business", "Science", "Sport", "Culture", "Travel", "Opinion")
    return page("The Courier", f"<h1>Today</h1><section>{cards}</section>", menu=sections)


def encyclopedia():
    sections = "".join(
        f"<section><h2 id=s{s}>{words(2, s)} <a href=/edit?section={s}>edit</a></h2>"
        + "".join(
            "<p>"
            + " ".join(
                f"{words(7, p + k)} <a href=/wiki/{words(1, p + k)}_{s}_{p}_{k}>{words(2, p + k)}</a>"
                for k in range(8)
            )
            + f"<sup><a href=#cite{s}-{p}>[{s * 4 + p}]</a></sup>.</p>"
            for p in range(4)
        )
        + "</section>"
        for s in range(16)
    )
    cites = "".join(
        f"<li id=cite{i}><a href=#ref{i}>^</a> {words(9, i)}. <a href=https://book{i}.example>Archive</a></li>"
        for i in range(60)
    )
    contents = links([words(2, s) for s in range(16)], "#s")
    return page(
        "Harbour - Cyclopaedia",
        f"<h1>Harbour</h1><nav aria-label=Contents><ul>{contents}</ul></nav>{sections}<h2>References</h2><ol>{cites}</ol>",
        footer=30,
    )


def article():
    body = "".join(
        f"<h2>{words(4, i)}</h2>" + "".join(f"<p>{words(70, i + k)}</p>" for k in range(4)) for i in range(9)
    )
    return page(
        "A long read",
        f"<article><h1>How lamps changed winter</h1><p>By <a href=/by/1>{name(1)}</a></p>{body}<button>Subscribe</button></article>",
    )


def forum():
    posts = "".join(
        f"<li><div class=post><div><a href=/u/{i}>{name(i)}</a><span>{i * 7} posts</span></div><div><p>{words(40, i)}</p>"
        f"<button>Like</button><button>Quote</button><button>Report</button><a href=#p{i}>#{i}</a></div></div></li>"
        for i in range(1, 41)
    )
    pages = "".join(f"<a href=?page={i}>{i}</a>" for i in range(1, 15))
    return page(
        "Lamp forum", f"<h1>Which lamp for a boat?</h1><ol>{posts}</ol><nav aria-label=Pages>{pages}</nav>"
    )


def documentation():
    tree = "".join(
        f"<li><a href=/docs/{i}>{words(2, i)}</a><ul>{links([words(3, i + k) for k in range(6)], f'/docs/{i}')}</ul></li>"
        for i in range(14)
    )
    body = "".join(
        f"<h2 id=h{i}>{words(3, i)} <a href=#h{i} aria-label='Permalink {i}'>#</a></h2><p>{words(40, i)}</p>"
        f"<pre><code>{words(30, i)}</code></pre><button>Copy</button>"
        for i in range(18)
    )
    return page(
        "Engine docs",
        f"<aside><nav aria-label=Sections><ul>{tree}</ul></nav></aside><article><h1>Getting started</h1>{body}</article>",
    )


def results():
    found = "".join(
        f"<div class=r><div><a href=https://r{i}.example/p?q=lamp><h3>{words(7, i)}</h3><cite>r{i}.example › p</cite></a>"
        f"<button aria-label='About this result {i}'>⋮</button></div><div>{words(26, i)}</div></div>"
        for i in range(30)
    )
    related = links([words(3, i) for i in range(10)], "/search")
    return page(
        "Search",
        f"<form role=search action=/search><input name=q aria-label=Query value=lamp><button>Search</button></form>{found}<ul>{related}</ul>",
    )


PAGES = {
    "news list": news(),
    "newspaper": paper(),
    "encyclopedia": encyclopedia(),
    "long article": article(),
    "forum thread": forum(),
    "documentation": documentation(),
    "search results": results(),
}
