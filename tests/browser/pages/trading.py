"""Pages to buy, book and fill in: shops, a product, a basket, a wizard, a hotel, a job board, a sign-up."""

from tests.browser.pages.parts import links, name, page, words


def shop():
    filters = "".join(
        f"<fieldset><legend>{words(1, g)}</legend>"
        + "".join(
            f"<label><input type=checkbox name=f{g} value={i}> {words(2, g + i)} <span>({i * 3})</span></label><br>"
            for i in range(8)
        )
        + "</fieldset>"
        for g in range(5)
    )
    cards = "".join(
        f"<div class=card><a href=/p/{i}?ref=grid><img alt='{words(3, i)}' width=80 height=80 src=data:,></a><div><a href=/p/{i}>{words(4, i)}</a>"
        f"<div><span>{i % 5 + 1}.0</span> <a href=/p/{i}#r>{i * 4} reviews</a></div><div>€ {i * 7 + 9}.90</div>"
        f"<button>Add to basket</button><button aria-label='Wish {i}'>♡</button></div></div>"
        for i in range(40)
    )
    sort = "<label>Sort <select><option>Best<option>Price<option>Newest<option>Rating</select></label>"
    return page(
        "Lamp shop",
        f"<h1>Lamps</h1><aside><form>{filters}</form></aside>{sort}<div class=grid>{cards}</div><nav aria-label=Pages>{links(range(1, 12))}</nav>",
        style=".grid{display:flex;flex-wrap:wrap}.card{width:200px}",
    )


def product():
    swatches = "".join(f"<label><input type=radio name=c value={i}> {words(1, i)}</label>" for i in range(9))
    reviews = "".join(
        f"<li><h3>{words(4, i)}</h3><p>{words(30, i)}</p><span>{name(i)}</span><button>Helpful ({i})</button><button>Report</button></li>"
        for i in range(25)
    )
    specs = "".join(f"<tr><th>{words(2, i)}</th><td>{words(4, i)}</td></tr>" for i in range(24))
    return page(
        "Desk lamp",
        f"<h1>Desk lamp</h1><form action=/basket method=post>{swatches}<label>Quantity <input type=number value=1></label><button>Add to basket</button></form><table>{specs}</table><ul>{reviews}</ul>",
    )


def basket():
    rows = "".join(
        f"<tr><td><a href=/p/{i}>{words(4, i)}</a></td><td><button aria-label='Less of {i}'>-</button><input aria-label='Quantity {i}' value={i}>"
        f"<button aria-label='More of {i}'>+</button></td><td>€ {i * 9}</td><td><button>Remove</button><button>Save for later</button></td></tr>"
        for i in range(1, 21)
    )
    return page(
        "Basket",
        f"<h1>Basket</h1><table><tr><th>Article<th>Number<th>Price<th></tr>{rows}</table><form action=/order method=post><label>Voucher <input></label><button>Place order</button></form>",
    )


def wizard():
    steps = "".join(f"<li aria-current={'step' if i == 2 else 'false'}>{words(2, i)}</li>" for i in range(5))
    fields = "".join(
        f"<div class=field><div><label for=i{i}>{words(3, i)}</label><span>*</span></div><div><input id=i{i} placeholder='{words(2, i)}' required></div><div class=hint>{words(14, i)}</div></div>"
        for i in range(18)
    )
    radios = "".join(
        f"<fieldset><legend>{words(3, g)}</legend>"
        + "".join(f"<label><input type=radio name=g{g}> {words(2, g + i)}</label>" for i in range(4))
        + "</fieldset>"
        for g in range(5)
    )
    return page(
        "Application",
        f"<h1>Step 3 of 5</h1><ol>{steps}</ol><form action=/next method=post>{fields}{radios}<label>Country <select>{''.join(f'<option>{words(1, i)} {i}' for i in range(60))}</select></label><button type=button>Back</button><button>Next</button></form>",
    )


def hotel():
    cards = "".join(
        f"<article><h3><a href=/h/{i}>{words(3, i)} hotel</a></h3><p>{words(18, i)}</p><ul><li>Pool</li><li>Breakfast</li></ul><span>€ {i * 11 + 60}</span><button>See rooms</button><button aria-label='Heart {i}'>♡</button></article>"
        for i in range(30)
    )
    return page(
        "Stay",
        f"<form role=search><label>Where <input value=Lisbon></label><label>From <input type=date></label><label>To <input type=date></label><button>Search</button></form>{cards}",
    )


def jobs():
    rows = "".join(
        f"<li><a href=/job/{i}><h3>{words(5, i)}</h3></a><div><a href=/c/{i}>{words(2, i)} Ltd</a> · {words(1, i)} · {i} days</div><button>Save</button><button>Dismiss</button></li>"
        for i in range(50)
    )
    return page("Jobs", f"<h1>50 jobs</h1><label>Remote <input type=checkbox></label><ul>{rows}</ul>")


def signup():
    terms = "".join(f"<p>{words(60, i)}</p>" for i in range(20))
    return page(
        "Join",
        f"<h1>Create an account</h1><form action=/join method=post><label>Mail <input type=email autocomplete=email></label><label>Password <input type=password value=hidden></label><label><input type=checkbox> I agree</label><div>{terms}</div><button>Create account</button></form><button>Continue with a key</button>",
    )


PAGES = {
    "shop": shop(),
    "product": product(),
    "basket": basket(),
    "form wizard": wizard(),
    "hotel search": hotel(),
    "job board": jobs(),
    "sign-up": signup(),
}
