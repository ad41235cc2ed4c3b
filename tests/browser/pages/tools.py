"""Pages to work with: a repository, a long table, a calendar, a map, settings, a timetable, video, a tree."""

from tests.browser.pages.parts import links, name, page, words


def repository():
    rows = "".join(
        f"<tr><td><svg width=16 height=16></svg></td><td><a href=/t/{i} title='{words(2, i)}'>{words(1, i)}-{i}.py</a></td><td><a href=/c/{i}>{words(7, i)}</a></td><td><time>{i} days ago</time></td></tr>"
        for i in range(45)
    )
    tabs = links(["Code", "Issues 214", "Pull requests 18", "Actions", "Wiki", "Security", "Insights"])
    readme = "".join(
        f"<h2>{words(3, i)} <a href=#r{i} aria-label='Permalink: {words(3, i)}'>#</a></h2><p>{words(45, i)} <a href=/x/{i}>{words(2, i)}</a></p>"
        for i in range(14)
    )
    people = "".join(
        f"<a href=/u/{i}><img alt='@{name(i)} {i}' width=20 height=20 src=data:,></a>" for i in range(30)
    )
    return page(
        "lamps/engine",
        f"<h1><a href=/lamps>lamps</a>/<a href=/lamps/engine>engine</a></h1><button>Watch</button><button>Fork</button><button>Star</button><nav aria-label=Repository><ul>{tabs}</ul></nav><table>{rows}</table><article>{readme}</article><aside>{people}</aside>",
    )


def table():
    head = "".join(f"<th><button>{words(1, i)}</button></th>" for i in range(8))
    rows = "".join(
        "<tr>"
        f"<td><input type=checkbox aria-label='Row {i}'></td>"
        + "".join(f"<td>{words(1, i + k)} {i * k}</td>" for k in range(5))
        + f"<td><a href=/e/{i}>Edit</a> <button>Delete</button></td></tr>"
        for i in range(400)
    )
    return page(
        "Records", f"<h1>400 records</h1><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def calendar():
    weeks = "".join(
        "<tr>"
        + "".join(
            f"<td role=gridcell><button aria-label='{w * 7 + d + 1} November'>{w * 7 + d + 1}</button>"
            + (
                f"<div><button>{d + 8}:00 {words(3, w * 7 + d)}</button><button>{d + 11}:30 {words(2, d)}</button></div>"
                if d % 2
                else ""
            )
            + "</td>"
            for d in range(7)
        )
        + "</tr>"
        for w in range(5)
    )
    return page(
        "Calendar",
        f"<h1>November</h1><button>Previous</button><button>Next</button><table role=grid>{weeks}</table>",
    )


def city_map():
    pins = "".join(
        f"<div class=pin style='left:{i * 17 % 600}px;top:{i * 29 % 300}px' title='{words(2, i)}'>{i}</div>"
        for i in range(50)
    )
    places = "".join(
        f"<li><a href=/place/{i}>{words(3, i)}</a><span>{i * 40} m</span><button>Route</button></li>"
        for i in range(30)
    )
    style = ".map{position:relative;width:640px;height:340px}.pin{position:absolute;cursor:pointer;width:16px;height:10px}"
    return page(
        "Map",
        f"<div class=map>{pins}</div><button aria-label='Zoom in'>+</button><button aria-label='Zoom out'>-</button><ul>{places}</ul>",
        style=style,
    )


def preferences():
    groups = "".join(
        f"<section><h2>{words(2, g)}</h2>"
        + "".join(
            f"<div class=s><div><div>{words(3, g + i)}</div><div>{words(16, g + i)}</div></div><button role=switch aria-checked={'true' if i % 2 else 'false'} aria-label='{words(3, g + i)} {g}-{i}'></button></div>"
            for i in range(7)
        )
        + "</section>"
        for g in range(7)
    )
    return page(
        "Settings",
        f"<h1>Settings</h1>{groups}<button>Save changes</button>",
        style="[role=switch]{width:40px;height:20px}",
    )


def timetable():
    rows = "".join(
        f"<li><details><summary>{i % 24}:1{i % 6} {words(2, i)} → {words(2, i + 3)}</summary><p>{words(20, i)}</p></details><button>Buy from € {i}</button></li>"
        for i in range(40)
    )
    return page(
        "Trains",
        f"<form role=search><label>From <input></label><label>To <input></label><button>Find</button></form><ol>{rows}</ol>",
    )


def video():
    cards = "".join(
        f"<div class=v><a href=/watch?v={i}&list=x{i}><img alt='' width=120 height=68 src=data:,><span>{i}:3{i % 6}</span></a><div><h3><a href=/watch?v={i}>{words(8, i)}</a></h3><a href=/@{i}>{name(i)}</a><span>{i}K views</span><button aria-label='Action menu {i}'>⋮</button></div></div>"
        for i in range(48)
    )
    chips = "".join(f"<button role=tab>{words(1, i)}</button>" for i in range(16))
    return page(
        "Video",
        f"<div role=tablist>{chips}</div><div class=g>{cards}</div>",
        style=".v{display:inline-block;width:220px}",
    )


def tree():
    items = "".join(
        f"<li role=treeitem aria-expanded=true tabindex=0>{words(2, i)} {i}<ul role=group>"
        + "".join(f"<li role=treeitem tabindex=-1>{words(3, i + k)} {i}.{k}</li>" for k in range(9))
        + "</ul></li>"
        for i in range(16)
    )
    return page("Explorer", f"<h1>Explorer</h1><ul role=tree aria-label=Folders>{items}</ul>")


PAGES = {
    "repository": repository(),
    "long table": table(),
    "calendar": calendar(),
    "map": city_map(),
    "settings": preferences(),
    "timetable": timetable(),
    "video site": video(),
    "tree": tree(),
}
