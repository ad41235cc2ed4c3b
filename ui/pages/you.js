// You: what you may do, your devices, and logging in on another one.
import { logOut, post } from "../api.js";
import { button, h, live, show, svg } from "../dom.js";
import { may, me } from "../me.js";
import { devices } from "../parts/device.js";
import { secret } from "../parts/secret.js";

const RIGHTS = { view: "look at everything here", answer: "answer questions", operate: "change how the gateway works" };

function drawn(rows) {
	const dots = rows.flatMap((row, y) => [...row].map((dot, x) => (dot === "1" ? `M${x} ${y}h1v1h-1z` : "")));
	const size = rows.length + 8;
	return svg("svg", { viewBox: `-4 -4 ${size} ${size}`, class: "code", role: "img", "aria-label": "The link as a code" }, svg("path", { d: dots.join("") }));
}

export function you(main) {
	const place = live();
	const link = async () => {
		const { url, advice, code } = await post("/api/logins");
		show(place, code && drawn(code), secret("A link that works once, for 15 minutes", url, advice ?? "Open it where you want to be logged in."));
	};
	const rights = new Intl.ListFormat("en").format(Object.keys(RIGHTS).filter(may).map((right) => RIGHTS[right]));
	show(
		main,
		h("section", h("h2", me.person), h("p", `You may ${rights}.`), h("div.buttons", button("Log out", logOut))),
		devices(),
		h("section", h("h2", "Log in on another device"), h("p.soft", "Such as your phone. It is you there too, for a week."), h("div.buttons", button("Make a login link", link)), place),
	);
}
