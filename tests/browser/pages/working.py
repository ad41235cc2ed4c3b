"""Pages where one works: tables, mail, calendars, boards, editors, settings, and applications built by script."""

from tests.browser.pages.kit import Writer, document, footer, many, nav, options


def table():
    say = Writer("table")

    def row(number):
        return f"""<tr><td><input type=checkbox aria-label="Select {number}" {"checked" if number == 3 else ""}></td><td><a href="#o{number}">ORD-{1000 + number}</a></td>
<td>{say.person()} {say.title(1)}</td><td>{number % 28 + 1} June</td><td>{say.number()}.00 €</td><td>{say.draw.choice(["paid", "open", "sent"])}</td>
<td><button>Edit</button> <button>Delete</button></td></tr>"""

    heads = "".join(
        f"<th><button>{name} ↕</button></th>" for name in ("Order", "Customer", "Date", "Sum", "State")
    )
    body = f"""<main><h1>Orders</h1><label>Find <input type=search></label><button>Export</button>
<table><thead><tr><th></th>{heads}<th></th></tr></thead><tbody>{many(500, row)}</tbody></table>
<nav aria-label=Pages><a href="#p1">1</a> <a href="#p2">2</a></nav></main>"""
    return document("Orders", body)


def admin_list():
    say = Writer("admin")

    def row(number):
        return f"""<tr act><td><input type=checkbox aria-label="Choose {number}"></td><td>{say.person()}{number}@lamp.example</td>
<td><select aria-label="Role of {number}">{options("reader", "writer", "owner", chosen="writer")}</select></td>
<td><button role=switch aria-checked={"true" if number % 3 else "false"} aria-label="Active {number}">●</button></td><td><a href="#u{number}">Open</a></td></tr>"""

    body = f"""<header>{nav("Admin", "Users", "Groups", "Audit", "Settings")}</header><main><h1>Users</h1>
<div role=toolbar aria-label=Actions><button disabled>Delete</button><button>Invite</button><button>Import</button></div>
<table><tr><th></th><th>Mail</th><th>Role</th><th>Active</th><th></th></tr>{many(120, row)}</table></main>"""
    return document("Users", body)


def mail():
    """Two frames: the message, and a side panel."""
    say = Writer("mail")

    def row(number):
        return f"""<tr class=p act><td><input type=checkbox aria-label="Select {number}"></td><td><span act title=Star>☆</span></td>
<td>{say.person()} {say.title(1)}</td><td>{say.title(6)} - {say.sentence(9)}</td><td>{number} Mar</td></tr>"""

    body = f"""<header><input type=search aria-label="Search mail"><button aria-label=Settings>⚙</button></header>
<nav aria-label=Folders><div class=p act>Compose</div>{many(14, lambda n: f'<a href="#f{n}">{say.title(1)} <b>{n}</b></a>')}</nav>
<main><h1>Inbox</h1><div role=toolbar aria-label="Selected mail"><button>Archive</button><button>Delete</button><button>Snooze</button></div>
<table>{many(100, row)}</table><iframe name=message src="/frame/message" title=Message width=600 height=300></iframe></main>
<iframe name=panel src="/frame/panel" title="Side panel" width=300 height=200></iframe>"""
    return document("Inbox (14)", body)


def message():
    say = Writer("message")
    links = many(12, lambda n: f'<p>{say.sentence()} <a href="#l{n}">{say.words(3)}</a></p>')
    return document("Message", f"<h2>Your order</h2>{links}<button>Reply</button><button>Forward</button>")


def panel():
    return document(
        "Panel", many(8, lambda n: f"<div act>Task {n}</div><input type=checkbox aria-label='Done {n}'>")
    )


def calendar():
    say = Writer("calendar")

    def day(number):
        events = many(number % 4, lambda n: f"<div class=p act>{8 + n}:00 {say.title(2)}</div>")
        return f"<td role=gridcell><a href='#d{number}' aria-label='{number} March'>{number}</a>{events}</td>"

    weeks = "".join(f"<tr>{many(7, day, start)}</tr>" for start in (1, 8, 15, 22, 29))
    small = many(31, lambda n: f"<button aria-label='Go to {n} April'>{n}</button>")
    body = f"""<header><button>Today</button><button aria-label="Previous month">‹</button><button aria-label="Next month">›</button>
<select aria-label=View>{options("Day", "Week", "Month", chosen="Month")}</select></header><aside><h2>April</h2><div>{small}</div>
<h2>My calendars</h2>{many(6, lambda n: f"<label><input type=checkbox {'checked' if n < 4 else ''}> {say.title(1)} {n}</label>")}</aside>
<main><h1>March</h1><table role=grid aria-label=March>{weeks}</table></main>"""
    return document("March", body)


def map_page():
    say = Writer("map")
    pins = many(
        60,
        lambda n: (
            f"<g act transform='translate({n * 12} {n * 5 % 380 + 20})'><title>Pin {n}</title><circle r=6 /></g>"
        ),
    )

    def place(number):
        return f"""<div class=p act><b>{say.title(2)} {number}</b><br>{say.number(1, 5)}.{number % 10} · {say.words(3)}</div>"""

    body = f"""<form role=search><input aria-label="Search the map" value=cafe><button aria-label=Search>⌕</button><button type=button>Directions</button></form>
<div role=list aria-label=Places>{many(40, place)}</div><main><h1>Map</h1><svg width=800 height=420 aria-label=Map>{pins}</svg>
<button aria-label="Zoom in">+</button><button aria-label="Zoom out">−</button><div class=p act title="My place" style="width:20px;height:20px">◎</div>
<label><input type=checkbox checked> Traffic</label></main>"""
    return document("Map", body)


def editor():
    say = Writer("editor")
    tools = many(
        28,
        lambda n: (
            f"<button aria-label='{say.title(1)} {n}' aria-pressed={'true' if n == 4 else 'false'}>{chr(64 + n % 26)}</button>"
        ),
    )
    menus = "".join(
        f"<div role=menuitem tabindex=0 aria-haspopup=true>{name}</div>"
        for name in ("File", "Edit", "View", "Insert")
    )
    body = f"""<div role=menubar>{menus}</div><div role=toolbar aria-label=Format>{tools}<select aria-label=Font>{options("Serif", "Sans", chosen="Sans")}</select></div>
<main><h1>Untitled</h1><div contenteditable=true aria-label="The text" role=textbox style="border:1px solid">{many(40, lambda _: f"<p>{say.paragraph(5)}</p>")}</div></main>
<aside aria-label=Comments>{many(20, lambda n: f"<div><b>{say.person()}</b><p>{say.sentence()}</p><button>Reply</button><button>Resolve</button></div>")}</aside>"""
    return document("Untitled", body)


def dashboard():
    """Cards are components with open shadow roots, some with closed ones."""
    say = Writer("dashboard")
    names = [say.title(2) for _ in range(36)]
    script = f"""
const names = {names!r}; window.closedRoots = new Map();
class MetricCard extends HTMLElement {{ connectedCallback() {{
  const n = +this.dataset.n, closed = n % 6 === 0, root = this.attachShadow({{ mode: closed ? "closed" : "open" }});
  root.innerHTML = `<style>section{{border:1px solid;padding:4px}}</style><section><h3>${{names[n]}}</h3><p>${{n * 37}} %</p>
<svg width=100 height=20 aria-hidden=true>${{"<rect width=4 height=9 />".repeat(12)}}</svg><button>Refresh</button><button>Expand</button>
<select aria-label="Range of ${{names[n]}}"><option>Day</option><option selected>Week</option></select><a href="#m${{n}}">Details</a></section>`;
  if (closed) window.closedRoots.set(this, root); }} }}
customElements.define("metric-card", MetricCard);"""
    body = f"""<header><h1>Overview</h1><button>Last 7 days</button><button aria-label=Refresh>⟳</button></header>
{nav("Main", "Overview", "Traffic", "Sales", "Errors", "Alerts", "Users", "Settings")}
<main><div class=grid>{many(36, lambda n: f"<metric-card data-n={n - 1}></metric-card>")}</div>
<h2>Alerts</h2><table>{many(40, lambda n: f"<tr><td>{say.title(4)}</td><td><button>Mute</button></td><td><a href='#a{n}'>Open</a></td></tr>")}</table></main>"""
    return document("Overview", body, script=script)


def components():
    """A design system: nested shadow roots, slots, and closed roots with fields."""
    script = """
window.closedRoots = new Map();
const make = (name, mode, html) => customElements.define(name, class extends HTMLElement { connectedCallback() {
  const root = this.attachShadow({ mode }); root.innerHTML = html(this); if (mode === "closed") window.closedRoots.set(this, root); } });
make("ds-button", "open", (at) => `<button><slot></slot></button>`);
make("ds-field", "closed", (at) => `<label>${at.title}: <input value="${at.dataset.value || ""}" aria-label="${at.title}"></label>`);
make("ds-toggle", "closed", (at) => `<button role=switch aria-checked=true aria-label="${at.title}">on</button>`);
make("ds-menu", "open", (at) => `<div role=menu aria-label="${at.title}"><div role=menuitem tabindex=0>Copy ${at.title}</div>
<div role=menuitem tabindex=0>Move ${at.title}</div><ds-toggle title="Pin ${at.title}"></ds-toggle></div>`);
make("ds-card", "open", (at) => `<article><slot name=head></slot><slot></slot><ds-button>Open ${at.title}</ds-button></article>`);"""
    cards = many(
        24,
        lambda n: (
            f"""<ds-card title="card {n}"><h2 slot=head>Card {n}</h2><p>Some text of card {n}</p>
<ds-field title="Note {n}" data-value="v{n}"></ds-field><ds-menu title="card {n}"></ds-menu></ds-card>"""
        ),
    )
    return document("Components", f"<main><h1>Components</h1>{cards}</main>", script=script)


def single_page_app():
    """Everything is a `div` or a `span`; listeners sit on the elements, and no role says so."""
    say = Writer("app")
    titles = [say.title(4) for _ in range(80)]
    script = f"""
const titles = {titles!r}; const list = document.getElementById("list");
titles.forEach((title, n) => {{ const row = document.createElement("div"); row.className = "row";
  row.innerHTML = `<span act>${{n % 3 ? "☐" : "☑"}} ${{title}}</span> <span act>✎ edit</span> <span act>✕ drop</span>`; list.append(row); }});"""
    body = f"""<div class=bar><span act>Inbox</span> <span act>Today</span> <span act>Upcoming</span> <span class=p act=delegated>Filters</span></div>
<main><h1>Tasks</h1><input placeholder="Add a task"><div act>Add</div><div id=list></div></main>
{many(12, lambda n: f"<div act>Project {say.title(1)} {n}</div>")}"""
    return document("Tasks", body, script=script)


def kanban():
    say = Writer("kanban")

    def card(number):
        return f"""<div class=p act><p>{say.title(5)}</p><span>LAMP-{say.number(100, 9999)}</span> <img alt="{say.person()}" width=16 height=16>
<button aria-label="Card actions">…</button></div>"""

    def column(number):
        return f"""<section aria-label="Column {number}"><h2>{say.title(2)} <span>{number * 4}</span></h2><button aria-label="Column actions">⋯</button>
{many(24, card)}<div act>+ Add a card</div></section>"""

    body = f"""<header><h1>Lighthouse board</h1><input aria-label="Search the board">{many(6, lambda n: f"<button aria-label='Filter by {say.person()} {n}'>●</button>")}</header>
{nav("Project", "Board", "Backlog", "Reports")}<main><div class=grid>{many(6, column)}</div></main>"""
    return document("Board", body)


def settings():
    say = Writer("settings")

    def switch(number):
        return f"""<div><span id=s{number}>{say.title(3)} {number}</span><p>{say.sentence()}</p>
<button role=switch aria-checked={"true" if number % 2 else "false"} aria-labelledby=s{number}>●</button></div>"""

    def section(number):
        fields = f"""<label>Name {number} <input value="{say.words(1)}"></label><label>Zone {number} <select>{options("UTC", "Berlin", "Tokyo", chosen="Berlin")}</select></label>"""
        return f"<section><h2>{say.title(2)}</h2>{fields}{many(4, switch)}<button>Save</button></section>"

    body = f"""{nav("Settings", "Profile", "Account", "Appearance", "Notifications", "Billing", "Keys")}<main><h1>Settings</h1>
<form>{many(10, section)}</form><details open><summary>Danger</summary><button>Delete account</button></details></main>"""
    return document("Settings", body)


def files():
    say = Writer("files")

    def row(number):
        return f"""<div role=row class=p act><span role=gridcell>{"📁" if number < 20 else "📄"} {say.words(2)} {number}</span><span role=gridcell>{number} kB</span>
<span role=gridcell>{say.person()}</span><span role=gridcell><button aria-label="More actions">⋮</button></span></div>"""

    tree = many(
        25,
        lambda n: (
            f"<div role=treeitem aria-level=1 aria-expanded={'true' if n == 2 else 'false'} tabindex=0>{say.title(1)} {n}</div>"
        ),
    )
    body = f"""<header><button>New</button><button>Upload</button><input type=search aria-label="Search files"></header>
<div role=tree aria-label=Folders>{tree}</div><main><nav aria-label=Path><a href="#a">My files</a> › <a href="#b">Lamps</a></nav><h1>Lamps</h1>
<div role=grid aria-label=Files>{many(150, row)}</div></main>"""
    return document("Lamps - Files", body)


def chat():
    say = Writer("chat")

    def said(number):
        return f"""<div class=m><b class=p act>{say.person()}</b> <a href="#t{number}">{number % 12}:{10 + number % 50}</a><p>{say.paragraph(2)}</p>
<span act title=React>☺</span><span act title=Thread>💬 {number % 6}</span></div>"""

    body = f"""<nav aria-label=Channels><h2>Channels</h2>{many(30, lambda n: f"<div class=p act># {say.words(1)}-{n}</div>")}</nav>
<main><h1># general</h1><div role=log aria-label=Messages>{many(90, said)}</div>
<div contenteditable=true role=textbox aria-label="Message to general" style="border:1px solid">hello</div><button>Send</button></main>"""
    return document("general", body)


def portal():
    """Frames of its own and of another origin, some inside others."""
    frames = many(
        4,
        lambda n: (
            f'<section><h2>Box {n}</h2><iframe name=box{n} src="/frame/box{n}" title="Box {n}" width=400 height=160></iframe></section>'
        ),
    )
    body = f"""<header>{nav("Portal", "Start", "Services", "Help")}</header><main><h1>My portal</h1>{frames}
<section><h2>Elsewhere</h2><iframe name=elsewhere src="{{other}}/frame/elsewhere" title=Elsewhere width=400 height=200></iframe></section></main>"""
    return document("My portal", body)


def box(number):
    say = Writer(f"box{number}")
    inner = (
        '<iframe name=inner src="/frame/inner" title=Inner width=300 height=80></iframe>'
        if number == 1
        else ""
    )
    links = many(10, lambda n: f'<li><a href="#b{n}">{say.title(3)}</a></li>')
    return document(
        f"Box {number}",
        f"<h3>{say.title(2)}</h3><ul>{links}</ul><button>Refresh box {number}</button><span act>Hide box {number}</span>{inner}",
    )


def small_frame(name):
    return document(
        name,
        f"<h3>{name}</h3><label>Code <input value=42></label><button>Check {name}</button><div act>Skip {name}</div>",
    )


def statistics():
    """A long page of prose and wide tables with nearly nothing to act on."""
    say = Writer("statistics")
    rows = many(300, lambda n: "<tr>" + "".join(f"<td>{say.number()}</td>" for _ in range(9)) + "</tr>")
    body = f"""<main><h1>Yearbook</h1>{many(12, lambda n: f"<h2>Chapter {n}</h2><p>{say.paragraph(8)}</p>")}<table>{rows}</table>
<a href="#csv">As a file</a></main>{footer("Method")}"""
    return document("Yearbook", body)


PAGES = {
    "table": table,
    "admin-list": admin_list,
    "mail": mail,
    "calendar": calendar,
    "map": map_page,
    "editor": editor,
    "dashboard": dashboard,
    "components": components,
    "single-page-app": single_page_app,
    "kanban": kanban,
    "settings": settings,
    "files": files,
    "chat": chat,
    "portal": portal,
    "statistics": statistics,
}
FRAMES = {
    "message": message,
    "panel": panel,
    "elsewhere": lambda: small_frame("elsewhere"),
    "inner": lambda: small_frame("inner"),
} | {f"box{number}": lambda number=number: box(number) for number in range(1, 5)}
