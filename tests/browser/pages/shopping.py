"""Pages where one buys, books and signs in."""

from tests.browser.pages.kit import Writer, document, footer, many, nav, options


def shop():
    say = Writer("shop")

    def facet(name, count):
        boxes = many(
            count,
            lambda n: (
                f"<li><label><input type=checkbox {'checked' if n == 2 else ''}> {name} {n}</label> ({say.number()})</li>"
            ),
        )
        return f"<fieldset><legend>{name}</legend><ul>{boxes}</ul><span act>Show more {name.lower()}</span></fieldset>"

    def product(number):
        return f"""<div class=card><a href="#i{number}"><img alt="{say.title(2)} lamp" width=80 height=40></a><h3><a href="#p{number}">{say.title(4)} lamp</a></h3>
<span>★★★★☆</span> <a href="#reviews{number}">{say.number()}</a><p>{say.number(5, 300)}.99 €</p><p>Delivery {say.words(2)}</p>
<button>Add to basket</button><span act title="Remember lamp {number}">♡</span></div>"""

    body = f"""<header><a href="#">Lamps & more</a><form role=search><select aria-label=Department>{options("All", "Indoor", "Outdoor")}</select>
<input type=search aria-label="Search the shop" value=brass><button>Go</button></form><a href="#basket">Basket (2)</a></header>
{nav("Departments", "Table", "Floor", "Ceiling", "Wall", "Outdoor", "Bulbs", "Sale")}
<aside aria-label=Filters><h2>Filter</h2>{facet("Brand", 14)}{facet("Colour", 10)}{facet("Material", 8)}
<label>From <input type=number value=10></label><label>to <input type=number value=200></label><button>Apply</button></aside>
<main><h1>Lamps</h1><label>Sort by <select>{options("Relevance", "Price", "Newest", chosen="Price")}</select></label>
<div class=grid>{many(72, product)}</div><nav aria-label=Pages><a href="#1">1</a><a href="#2">2</a><a href="#n">Next</a></nav></main>
{footer("Returns", "Delivery", "Imprint")}"""
    return document("Lamps", body)


def product():
    say = Writer("product")
    swatches = many(
        6,
        lambda n: (
            f"<span act title='Colour {n}' style='display:inline-block;width:20px;height:20px;background:#{n}{n}9'></span>"
        ),
    )

    def review(number):
        return f"""<div><h3>{say.title(4)}</h3><p>{number % 5 + 1} of 5 by {say.person()}</p><p>{say.paragraph(4)}</p>
<button>Helpful</button><a href="#report{number}">Report</a></div>"""

    body = f"""<header>{nav("Site", "Shop", "Sale", "Help")}</header><main><nav aria-label=Breadcrumb><a href="#1">Lamps</a> › <a href="#2">Table</a></nav>
<h1>Brass table lamp</h1>{many(5, lambda n: f"<div class=p act><img alt='Picture {n}' width=40 height=40></div>")}<p>89.00 €</p>{swatches}
<form><label>Amount <input type=number value=1 min=1></label><label>Shade <select>{options("Linen", "Glass", "None", chosen="Glass")}</select></label>
<label><input type=radio name=w checked> Without bulb</label><label><input type=radio name=w> With bulb</label>
<button>Add to basket</button><button type=button>Remember</button></form>
<h2>Details</h2><table>{many(20, lambda n: f"<tr><th>{say.title(1)}</th><td>{say.words(3)}</td></tr>")}</table>
<h2>Reviews</h2>{many(40, review)}<button>More reviews</button></main>{footer("Imprint")}"""
    return document("Brass table lamp", body)


def basket():
    say = Writer("basket")

    def line(number):
        return f"""<li><a href="#p{number}">{say.title(3)}</a> <label>Amount <input type=number value={number}></label>
<span>{say.number(5, 90)} €</span> <button>Remove</button> <button>Save for later</button></li>"""

    body = f"""<header><a href="#">Lamps & more</a></header><main><h1>Basket</h1><ul>{many(7, line)}</ul>
<form><label>Voucher <input></label><button>Apply</button></form><p>Total 312 €</p><button>Go to checkout</button></main>"""
    return document("Basket", body)


def checkout():
    def field(label, **given):
        extra = " ".join(f'{name}="{value}"' for name, value in given.items())
        return f"<label>{label} <input {extra}></label><br>"

    countries = [f"Country {n}" for n in range(1, 60)]
    body = f"""<header><a href="#">Lamps & more</a></header><main><h1>Checkout</h1><form action=#order method=post>
<fieldset><legend>Address</legend>{field("First name", value="Ada")}{field("Last name", value="Byron")}{field("Street")}{field("House number")}
{field("Postcode", required="")}{field("Town")}<label>Country <select>{options(*countries, chosen="Country 12")}</select></label></fieldset>
<fieldset><legend>Delivery</legend><label><input type=radio name=d checked> Standard, free</label><label><input type=radio name=d> Express, 9 €</label></fieldset>
<fieldset><legend>Payment</legend>{field("Card number", inputmode="numeric")}{field("Name on card")}{field("Security code", type="password", value="123")}
<label>Month <select>{options(*[f"{n:02}" for n in range(1, 13)], chosen="05")}</select></label></fieldset>
<label><input type=checkbox checked> Send me news</label><label><input type=checkbox> I accept the <a href="#terms">terms</a></label>
<button>Place order</button><button type=button>Back</button></form>
<aside aria-label=Summary><h2>Your order</h2><p>Two lamps, 178 €</p></aside></main>"""
    return document("Checkout", body)


def booking():
    say = Writer("booking")

    def day(number):
        return f"<td><button {'disabled' if number % 7 == 0 else ''} aria-label='{number} July, {60 + number} €'>{number}<br>{60 + number}</button></td>"

    weeks = "".join(f"<tr>{many(7, day, start)}</tr>" for start in (1, 8, 15, 22))

    def offer(number):
        return f"""<article><h3><a href="#h{number}">Hotel {say.title(2)}</a></h3><p>{say.number(1, 9)}.{number % 10} · {say.number()} reviews</p><p>{say.sentence(20)}</p>
<a href="#map{number}">Show on map</a><span act>♡ Keep</span><p>{say.number(50, 300)} € a night</p><button>See rooms</button></article>"""

    body = f"""<header>{nav("Travel", "Stays", "Flights", "Cars", "Trains")}</header><main><h1>Where to?</h1><form role=search>
<label>Place <input role=combobox aria-expanded=false value=Lisbon></label><label>Guests <select>{options("1", "2", "3", "4", chosen="2")}</select></label>
<label><input type=checkbox> For work</label><button>Search</button></form>
<h2>July</h2><table role=grid aria-label=July>{weeks}</table><h2>Offers</h2>{many(60, offer)}</main>{footer("Partners", "Careers")}"""
    return document("Stays", body)


def login():
    say = Writer("login")
    tongues = many(24, lambda n: f'<li><a href="#tongue{n}">{say.title(1)} ({say.words(1)})</a></li>')
    body = f"""<header><a href="#">Lamp ID</a>{nav("Site", "Products", "Prices", "Help")}</header><main><h1>Sign in</h1><form action=#login method=post><label>E-mail <input type=email value="ada@lamp.example" autocomplete=username></label>
<label>Password <input type=password value="lantern-7" autocomplete=current-password></label>
<span act aria-label="Show the password">👁</span><label><input type=checkbox checked> Stay signed in</label>
<button>Sign in</button></form><p>or</p><button>Continue with Lamp ID</button><button>Continue with a passkey</button>
<a href="#forgot">Forgot your password?</a><p>New here? <a href="#new">Create an account</a></p></main>
<nav aria-label=Languages><ul>{tongues}</ul></nav>{footer("Privacy", "Terms", "Imprint")}"""
    return document("Sign in", body)


def wizard():
    say = Writer("wizard")
    steps = many(
        6,
        lambda n: f"<li {'aria-current=step' if n == 3 else ''}><a href='#s{n}'>{n}. {say.title(2)}</a></li>",
    )

    def question(number):
        choices = many(
            4,
            lambda n: (
                f"<label><input type=radio name=q{number} {'checked' if n == number % 4 + 1 else ''}> {say.title(2)} {number}{n}</label>"
            ),
        )
        return f"<fieldset><legend>{say.title(5)}?</legend>{choices}</fieldset>"

    def text(number):
        return f"<label for=t{number}>{say.title(2)} {number}</label><input id=t{number} value='{say.words(1) if number % 2 else ''}' placeholder='{say.words(2)}'>"

    body = f"""<header><a href="#">Permit office</a></header><nav aria-label=Steps><ol>{steps}</ol></nav><main><h1>Step 3 of 6</h1>
<form action=#next method=post>{many(8, question)}<h2>About you</h2>{many(12, text)}
<label>Notes <textarea>two lamps
in the yard</textarea></label><label>Region <select>{options(*[f"Region {n}" for n in range(1, 30)], chosen="Region 9")}</select></label>
<label><input type=checkbox checked> I have read this</label><label>How bright <input type=range value=40></label><label>Plan <input type=file></label>
<button type=button>Back</button><button type=button>Save</button><button>Continue</button></form></main>"""
    return document("Permit", body, style="label{display:inline-block;margin:2px 6px}")


PAGES = {
    "shop": shop,
    "product": product,
    "basket": basket,
    "checkout": checkout,
    "booking": booking,
    "login": login,
    "wizard": wizard,
}
