"""Applications: one of spans, a dashboard of shadow roots, mail in frames, a board, chat, an editor, a file manager."""

from html import escape

from tests.browser.pages.parts import name, page, words


def spans():
    rows = "".join(
        f"<div class=row><span class=t data-i={i}>{words(3, i)}</span><span class=x data-i={i}>close {i}</span><em>{i} d</em></div>"
        for i in range(60)
    )
    script = "document.querySelectorAll('.t,.x').forEach(e=>e.addEventListener('click',()=>{document.title='clicked '+e.textContent}))"
    return page(
        "Tasks",
        f"<h1>Tasks</h1><div role=toolbar><button>New</button><button>Filter</button></div>{rows}",
        script=script,
    )


def dashboard():
    cards = "".join(f"<stat-card data-i={i}></stat-card>" for i in range(24))
    script = """customElements.define('stat-card', class extends HTMLElement { connectedCallback() {
const i = this.dataset.i, root = this.attachShadow({mode: i % 6 ? 'open' : 'closed'});
root.innerHTML = `<section><h3>Metric ${i}</h3><p>${i * 37} events</p><div><button>Refresh ${i}</button><button>Hide ${i}</button><a href=/m/${i}>Details ${i}</a><select><option>Day<option>Week</select></div></section>`; } })"""
    rows = "".join(
        f"<tr><td>{words(2, i)}</td><td>{i * 13}</td><td>{i}%</td><td><a href=/r/{i}>Open</a></td></tr>"
        for i in range(40)
    )
    return page("Dashboard", f"<h1>Overview</h1>{cards}<table>{rows}</table>", script=script)


def mail():
    rows = "".join(
        f"<tr><td><input type=checkbox aria-label='Select {i}'></td><td><button aria-label='Star {i}'>☆</button></td><td>{name(i)}</td><td><a href=#m{i}>{words(5, i)}</a> {words(10, i)}</td><td>{i}:00</td></tr>"
        for i in range(50)
    )
    message = escape(
        f"<h2>Lamps</h2><p>{words(60)}</p><a href=https://lamps.example/offer>See the offer</a><button>Reply</button>",
        quote=True,
    )
    folders = "".join(f"<li><a href=#f{i}>{words(1, i)} ({i})</a></li>" for i in range(12))
    return page(
        "Mail",
        f'<nav aria-label=Folders><ul>{folders}</ul></nav><button>Compose</button><table>{rows}</table><iframe title=Message srcdoc="{message}" width=600 height=200></iframe><iframe title=Calendar srcdoc="{escape("<button>Today</button>", quote=True)}"></iframe>',
    )


def board():
    columns = "".join(
        f"<section aria-label='Column {c}'><h2>{words(1, c)}</h2><ul>"
        + "".join(
            f"<li draggable=true><div><a href=/card/{c}-{i}>{words(5, c + i)}</a><span>{name(i)}</span><button aria-label='Menu {c}-{i}'>…</button></div></li>"
            for i in range(14)
        )
        + "</ul><button>Add a card</button></section>"
        for c in range(6)
    )
    return page("Board", f"<h1>Sprint</h1>{columns}")


def chat():
    people = "".join(f"<li><button>{name(i)} {i}</button></li>" for i in range(30))
    log = "".join(
        f"<div class=m><img alt='{name(i)}' width=20 height=20 src=data:,><b>{name(i)}</b> <time>{i}:0{i % 6}</time><p>{words(14, i)}</p><div><button>React</button><button>Reply</button></div></div>"
        for i in range(70)
    )
    return page(
        "Chat",
        f"<aside><ul>{people}</ul></aside><section role=log>{log}</section><form><textarea aria-label=Message></textarea><button>Send</button></form>",
    )


def editor():
    tools = "".join(
        f"<button aria-label='{words(2, i)}' aria-pressed={'true' if i % 5 == 0 else 'false'}><span>◧</span></button>"
        for i in range(40)
    )
    outline = "".join(f"<li><a href=#o{i}>{words(4, i)}</a></li>" for i in range(25))
    text = "".join(f"<h2>{words(3, i)}</h2><p>{words(50, i)}</p>" for i in range(16))
    return page(
        "Editor",
        f"<div role=toolbar>{tools}</div><nav aria-label=Outline><ul>{outline}</ul></nav><div contenteditable=true role=textbox aria-label=Document>{text}</div>",
    )


def files():
    rows = "".join(
        f"<div role=row><div role=gridcell><input type=checkbox aria-label='Pick {i}'></div><div role=gridcell><button>{words(2, i)}-{i}.pdf</button></div><div role=gridcell>{i * 13} KB</div><div role=gridcell>{name(i)}</div><div role=gridcell><button aria-label='More {i}'>⋮</button></div></div>"
        for i in range(80)
    )
    return page("Files", f"<h1>My files</h1><div role=grid aria-label=Files>{rows}</div>")


PAGES = {
    "single-page app": spans(),
    "dashboard": dashboard(),
    "mail": mail(),
    "board": board(),
    "chat": chat(),
    "editor": editor(),
    "file manager": files(),
}
