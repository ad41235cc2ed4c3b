"""A small shop for the browser to visit: search and filter, products, a basket, a checkout in steps, orders, a report."""

from html import escape
from urllib.parse import parse_qsl

from agent_gate.net.http import Request, Response

HTML = b"text/html; charset=utf-8"
PRODUCTS = {
    number: (name, kind, price, hours)
    for number, (name, kind, price, hours) in enumerate(
        [
            ("Harbour lamp", "lamp", 49, 8000),
            ("Desk lamp", "lamp", 29, 12000),
            ("Reading lamp", "lamp", 35, 15000),
            ("Storm lantern", "lantern", 59, 200),
            ("Camp lantern", "lantern", 24, 90),
            ("Candle box", "candle", 12, 40),
            ("Garden torch", "torch", 18, 60),
            ("Pocket torch", "torch", 15, 120),
        ],
        1,
    )
}
KINDS = ("lamp", "lantern", "candle", "torch")
ORDERS = [(f"A-{100 + number}", f"Customer {number}", number * 7 % 90 + 10) for number in range(1, 31)]
PER_PAGE = 10


def page(title: str, body: str) -> Response:
    links = '<a href="/">Shop</a> <a href="/basket">Basket</a> <a href="/orders">Orders</a>'
    style = (
        "body{font:16px sans-serif;max-width:800px;margin:20px auto}td,th{padding:4px 10px;text-align:left}"
    )
    text = (
        f"<!doctype html><html lang=en><head><title>{title} · Lamp shop</title><style>{style}</style></head><body>"
        f"<header><nav>{links}</nav></header><main><h1>{title}</h1>{body}</main></body></html>"
    )
    return Response(200, text.encode(), content_type=HTML)


def away(place: str) -> Response:
    return Response(303, b"", ((b"location", place.encode()),), content_type=HTML)


class Shop:
    """Everything in memory, for whoever comes by."""

    def __init__(self) -> None:
        self.basket: list[int] = []
        self.checkout: dict[str, str] = {}
        self.placed: list[dict[str, str]] = []

    async def handle(self, request: Request) -> Response:
        given = dict(parse_qsl(request.query))
        sent = dict(parse_qsl(request.body.decode("utf-8", "replace")))
        match request.method, request.path.strip("/").split("/"):
            case "GET", [""]:
                return self._front(given)
            case "GET", ["product", number] if number.isdigit() and int(number) in PRODUCTS:
                return self._product(int(number))
            case "POST", ["add"] if sent.get("product", "").isdigit() and int(sent["product"]) in PRODUCTS:
                self.basket.append(int(sent["product"]))
                return away("/basket")
            case "GET", ["basket"]:
                return self._basket()
            case "GET", ["checkout", step]:
                return self._checkout(step)
            case "POST", ["checkout", step]:
                self.checkout.update(sent)
                return away("/checkout/pay" if step == "address" else "/checkout/review")
            case "POST", ["order"]:
                self.placed.append(dict(self.checkout))
                self.basket.clear()
                return page("Thank you", f"<p>Your order number is B-{len(self.placed)}.</p>")
            case "GET", ["orders"]:
                return self._orders(int(given.get("page", "1")) if given.get("page", "1").isdigit() else 1)
            case "GET", ["report.csv"]:
                rows = "\n".join(f"{number},{who},{total}" for number, who, total in ORDERS)
                disposition = ((b"content-disposition", b"attachment; filename=report.csv"),)
                return Response(
                    200, f"order,customer,total\n{rows}\n".encode(), disposition, content_type=b"text/csv"
                )
        return Response(404, b"<h1>Not found</h1>", content_type=HTML)

    def _front(self, given: dict[str, str]) -> Response:
        wanted, kind = given.get("q", "").lower(), given.get("kind", "")
        found = {
            number: one
            for number, one in PRODUCTS.items()
            if wanted in one[0].lower() and kind in ("", one[1])
        }
        options = "".join(
            f"<option value={one}{' selected' if one == kind else ''}>{one}</option>" for one in KINDS
        )
        search = (
            f'<form role=search><label>Search <input name=q value="{escape(wanted)}"></label> '
            f'<label>Kind <select name=kind><option value="">all</option>{options}</select></label> <button>Find</button></form>'
        )
        items = "".join(
            f"<li><a href=/product/{number}>{one[0]}</a> <span>{one[2]} euro</span></li>"
            for number, one in found.items()
        )
        return page("Everything that shines", f"{search}<p>{len(found)} products</p><ul>{items}</ul>")

    def _product(self, number: int) -> Response:
        name, kind, price, hours = PRODUCTS[number]
        facts = f"<dl><dt>Price</dt><dd>{price} euro</dd><dt>Burns</dt><dd>{hours} hours</dd><dt>Kind</dt><dd>{kind}</dd></dl>"
        add = f"<form action=/add method=post><input type=hidden name=product value={number}><button>Add to basket</button></form>"
        return page(name, facts + add)

    def _basket(self) -> Response:
        rows = "".join(
            f"<tr><td>{PRODUCTS[one][0]}</td><td>{PRODUCTS[one][2]} euro</td></tr>" for one in self.basket
        )
        total = sum(PRODUCTS[one][2] for one in self.basket)
        onward = "<a href=/checkout/address>Check out</a>" if self.basket else "<p>It is empty.</p>"
        return page("Basket", f"<table>{rows}</table><p>Total {total} euro</p>{onward}")

    def _checkout(self, step: str) -> Response:
        if step == "address":
            fields = "".join(
                f"<p><label>{one} <input name={one.lower()} required></label></p>"
                for one in ("Name", "Street", "City")
            )
            return page(
                "Address",
                f"<form action=/checkout/address method=post>{fields}<button>Continue</button></form>",
            )
        if step == "pay":
            ways = "".join(
                f"<p><label><input type=radio name=pay value={one.lower()}> {one}</label></p>"
                for one in ("Invoice", "Transfer")
            )
            gift = "<p><label><input type=checkbox name=gift> Wrap it as a gift</label></p>"
            return page(
                "Payment",
                f"<form action=/checkout/pay method=post>{ways}{gift}<button>Continue</button></form>",
            )
        told = "".join(
            f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in self.checkout.items()
        )
        total = sum(PRODUCTS[one][2] for one in self.basket)
        return page(
            "Review",
            f"<table>{told}</table><p>Total {total} euro</p><form action=/order method=post><button>Place order</button></form>",
        )

    def _orders(self, number: int) -> Response:
        shown = ORDERS[(number - 1) * PER_PAGE : number * PER_PAGE]
        rows = "".join(
            f"<tr><td>{order}</td><td>{who}</td><td>{total} euro</td></tr>" for order, who, total in shown
        )
        onward = f"<a href=/orders?page={number + 1}>Next page</a>" if number * PER_PAGE < len(ORDERS) else ""
        return page(
            "Orders",
            f"<a href=/report.csv>Report as CSV</a><table><tr><th>Order<th>Customer<th>Total</tr>{rows}</table>{onward}",
        )
