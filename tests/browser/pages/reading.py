"""Pages that are read: news, articles, documentation, threads, results, feeds."""

from tests.browser.pages.kit import Writer, document, footer, many, nav, options


def news():
    say = Writer("news")

    def story(number):
        return f"""<tr class=story><td>{number}.</td><td><a href="#vote{number}" title=upvote aria-label="Vote up">▲</a></td>
<td><a href="https://site{number}.example/{say.words(1)}">{say.title(8)}</a> <span>(<a href="#from{number}">site{number}.example</a>)</span></td></tr>
<tr><td colspan=2></td><td>{say.number()} points by <a href="#u{number}">{say.person().lower()}{number}</a>
<a href="#t{number}">{say.number(1, 23)} hours ago</a> | <a href="#h{number}">hide</a> | <a href="#c{number}">{say.number()} comments</a></td></tr>"""

    body = f"""<header>{nav("Site", "New", "Past", "Comments", "Ask", "Show", "Jobs", "Submit")}<a href="#login">login</a></header>
<main><h1>Front page</h1><table>{many(90, story)}</table><a href="#p2">More</a></main>{footer("Guidelines", "FAQ", "Lists", "API")}
<form role=search><label>Search <input name=q></label></form>"""
    return document("News", body)


def encyclopedia():
    say = Writer("encyclopedia")

    def paragraph(section):
        linked = many(7, lambda n: f'{say.words(5)} <a href="#w{section}-{n}">{say.words(2)}</a>')
        return f"<p>{linked} {say.sentence()}<sup><a href='#n{section}'>[{section}]</a></sup></p>"

    def section(number):
        return f"""<h2 id=s{number}>{say.title(3)} <a href="#edit{number}" aria-label="Edit section {number}">edit</a></h2>
{many(4, lambda _: paragraph(number))}<h3>{say.title(2)}</h3>{paragraph(number)}{paragraph(number)}"""

    def reference(number):
        return f'<li><a href="#b{number}">^</a> {say.person()}, {say.title(6)}. <a href="https://doi.example/{number}">doi:{number}</a></li>'

    contents = many(14, lambda n: f'<li><a href="#s{n}">{n} {say.title(2)}</a></li>')
    body = f"""<header><a href="#home">Encyclopedia</a><form role=search><input type=search aria-label="Search the encyclopedia">
<button>Search</button></form></header>{nav("Tools", "Read", "Edit", "History", "Talk", "Cite", "Print")}
<nav aria-label=Contents><h2>Contents</h2><ul>{contents}</ul></nav><main><h1>Lighthouse</h1>{paragraph(0)}
{many(14, section)}<h2>References</h2><ol>{many(120, reference)}</ol></main>{footer("Privacy", "About", "Disclaimers")}"""
    return document("Lighthouse - Encyclopedia", body)


def documentation():
    say = Writer("documentation")
    tree = many(
        9,
        lambda n: (
            f"<li><details {'open' if n < 4 else ''}><summary>{say.title(2)}</summary><ul>"
            + many(9, lambda m: f'<li><a href="#d{n}-{m}">{say.title(2)}</a></li>')
            + "</ul></details></li>"
        ),
    )

    def section(number):
        return f"""<h2>{say.title(3)}</h2><p>{say.paragraph()}</p><pre><code>{say.words(1)}({number})</code></pre>
<button aria-label="Copy">⧉</button><p>{say.paragraph(2)} <a href="#x{number}">{say.words(2)}</a></p>"""

    body = f"""<header><a href="#">Docs</a><select aria-label=Version>{options("v3 (latest)", "v2", "v1", chosen="v2")}</select>
<button>Toggle theme</button></header><nav aria-label="Chapters"><ul>{tree}</ul></nav>
<main><nav aria-label=Breadcrumb><a href="#a">Guide</a> / <a href="#b">Routing</a></nav><h1>Routing</h1>{many(16, section)}
<a href="#prev">Previous</a> <a href="#next">Next</a></main>{footer("Edit this page")}"""
    return document("Routing", body)


def forum():
    say = Writer("forum")

    def post(number):
        return f"""<article><header><a href="#u{number}">{say.person()}</a> <time>{number} May</time> <a href="#p{number}">#{number}</a></header>
<p>{say.paragraph(5)}</p><p>{say.paragraph(3)} <a href="#l{number}">{say.words(3)}</a></p>
<button>Like <span>{say.number(0, 40)}</span></button> <button>Reply</button> <button>Quote</button> <span act title=Report>⚑</span></article>"""

    body = f"""<header>{nav("Forum", "Home", "New", "Unread", "Members")}</header><main><h1>Which lamp lasts longest?</h1>
<nav aria-label=Pages><a href="#1">1</a> <a href="#2">2</a> <a href="#3">3</a></nav>{many(50, post)}
<form><label>Your reply <textarea name=reply>Draft of mine</textarea></label><label><input type=checkbox checked> Notify me</label>
<button>Post reply</button></form></main>{footer("Rules")}"""
    return document("Which lamp lasts longest?", body)


def search_results():
    say = Writer("search")

    def result(number):
        return f"""<div class=result><div><a href="https://r{number}.example"><h3>{say.title(6)}</h3><span>r{number}.example › {say.words(2)}</span></a>
<div class=p act aria-hidden=false>⋮</div></div><p>{say.paragraph(2)}</p><a href="#cache{number}">Cached</a></div>"""

    body = f"""<form role=search><input type=search aria-label=Query value="brass lamp"><button>Search</button></form>
<div role=tablist><button role=tab aria-selected=true>All</button><button role=tab>Images</button><button role=tab>News</button></div>
<main><h1>Results</h1><p>About 12,300 results</p>{many(40, result)}
<h2>People also ask</h2>{many(6, lambda n: f"<div class=p act>{say.title(5)}?</div>")}
<nav aria-label=Pages>{many(10, lambda n: f'<a href="#page{n}">{n}</a>')}</nav></main>{footer("Settings", "Terms")}"""
    return document("brass lamp - Search", body)


def videos():
    say = Writer("videos")

    def video(number):
        return f"""<div class=video><a href="#v{number}"><img alt="" width=120 height=60><span>{say.number(1, 20)}:{say.number(10, 59)}</span></a>
<h3><a href="#v{number}">{say.title(7)}</a></h3><a href="#ch{number}">{say.person()} Films</a><span>{say.number()} K views</span>
<span class=p act aria-label="More about this">⋮</span></div>"""

    chips = many(14, lambda n: f"<div class=p act>{say.title(1)} {n}</div>")
    body = f"""<header><button aria-label="Open the menu">☰</button><input aria-label="Search videos"><button>Search</button></header>
{nav("Channels", *[f"{say.person()} {n}" for n in range(16)])}<main><h1>Recommended</h1><div>{chips}</div>
<div class=grid>{many(80, video)}</div></main>"""
    return document("Videos", body)


def feed():
    """Grows as one scrolls, and by a button; built by script, and listened to on its root alone."""
    say = Writer("feed")
    texts = [say.paragraph(2) for _ in range(20)]
    script = f"""
const texts = {texts!r}; let next = 0; const root = document.getElementById("feed");
function grow() {{ for (let i = 0; i < 30; i++, next++) root.insertAdjacentHTML("beforeend", `<article aria-label="Post ${{next}}">
<a href="#u${{next}}">person${{next}}</a><p>${{texts[next % 20]}}</p><div class=p act=delegated>♥ ${{next * 7 % 90}}</div>
<div class=p act=delegated>Repost</div><div class=p act=delegated>Share</div></article>`); window.markAgain && markAgain(); }}
root.addEventListener("click", () => {{}}); document.getElementById("more").addEventListener("click", grow); grow(); grow(); grow();"""
    body = f"""{nav("App", "Home", "Explore", "Notifications", "Messages", "Profile")}<main><h1>Home</h1>
<form><div contenteditable=true role=textbox aria-label="What happens?" style="border:1px solid">…</div><button>Post</button></form>
<section aria-label=Timeline id=feed></section><button id=more>Load more</button></main>
<aside><h2>Trends</h2>{many(12, lambda n: f"<div class=p act>{say.title(2)}<br>{say.number()} posts</div>")}</aside>"""
    return document("Home", body, script=script)


def repository():
    say = Writer("repository")

    def file(number):
        return f"""<tr><td><a href="#f{number}">{say.words(1)}_{number}.py</a></td><td><a href="#m{number}">{say.title(5)}</a></td>
<td><time>{number} days ago</time></td></tr>"""

    def chapter(number):
        return f"""<h2>{say.title(3)} <a href="#r{number}" aria-label="Permalink: {say.words(2)}">¶</a></h2><p>{say.paragraph(3)}
<a href="#k{number}">{say.words(2)}</a></p><ul>{many(5, lambda n: f'<li><a href="#i{number}-{n}">{say.words(3)}</a>: {say.sentence()}</li>')}</ul>"""

    languages = many(6, lambda n: f'<li><a href="#lang{n}">{say.title(1)} {n}.1 %</a></li>')
    body = f"""<header>{nav("Site", "Pulls", "Issues", "Marketplace", "Explore")}<input aria-label="Search or jump to">
<button aria-label="Create new">+</button><button aria-label="Open account menu">A</button></header>
<nav aria-label=Repository>{many(8, lambda n: f'<a href="#tab{n}">{say.title(1)} <span>{say.number()}</span></a>')}</nav>
<main><h1><a href="#o">lamp</a> / <a href="#r">lighthouse</a></h1><button aria-haspopup=menu>Watch</button><button>Fork 31</button><button>Star 2.1k</button>
<details><summary>Code</summary><p>Clone</p></details><select aria-label=Branch>{options("main", "next", "v1", chosen="next")}</select>
<h2>Files</h2><table aria-label=Files>{many(60, file)}</table><article><h1>README</h1>{many(12, chapter)}</article>
<aside><h2>About</h2><p>{say.sentence()}</p><h2>Languages</h2><ul>{languages}</ul>
<h2>Contributors</h2>{many(30, lambda n: f'<a href="#c{n}"><img alt="@{say.person().lower()}{n}" width=20 height=20></a>')}</aside></main>{footer("Terms", "Status")}"""
    return document("lamp/lighthouse", body)


PAGES = {
    "news": news,
    "encyclopedia": encyclopedia,
    "documentation": documentation,
    "forum": forum,
    "search-results": search_results,
    "videos": videos,
    "feed": feed,
    "repository": repository,
}
