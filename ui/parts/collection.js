// A page of things of one kind: a list with a search, and what is chosen in it. The first is open by itself; what is
// searched for and chosen by hand stands in the address.
import { query, segment } from "../api.js";
import { empty, fault, h, loading, show } from "../dom.js";
import { many } from "../format.js";
import { listen } from "../inbox.js";
import { keys } from "../keyboard.js";
import { every, isWide, movement, newest, panes, together } from "../layout.js";
import { List, listOrEmpty } from "./list.js";

const FIELDS = "input, textarea, select";
const groupRow = ({ group, size }) => h("div.group", h("strong", group), h("span.end", size));

export class Collection {
	// `load` gives the things, `row` one in two lines, `text` what a search looks through, `group` the name above some,
	// `told` all about one, at once or later, `none` what to do where there are none, `kept` what else is in the address.
	// They are loaded anew when the catalog changes, and every `again` milliseconds.
	constructor(main, given) {
		const { load, thing, things = `${thing}s`, bar = [], params, again, ...rest } = given;
		Object.assign(this, { kept: {} }, rest, { main, thing, load_: load, needle: params?.get("text") ?? "" });
		Object.assign(this, { all: [], loading: newest(), telling: newest(), shown: "", drawn: "", byHand: "" });
		this.nothing = h("div", loading());
		this.list = new List({
			row: (one) => (one.group ? groupRow(one) : this.row(one)),
			key: (one) => (one.group ? `group ${one.group}` : this.key(one)),
			label: things,
			onSelect: (one, byHand) => one.group || this.open(one, byHand),
		});
		this.list.node.hidden = true;
		const label = `Search ${things.toLowerCase()}`;
		const oninput = ({ target }) => this.search(target.value);
		const search = h("input", { type: "search", placeholder: "Search", "aria-label": label, value: this.needle, oninput });
		this.view = panes(main, { bar: h("div.bar", search, bar), list: this.list.node, nothing: this.nothing });
		keys(movement(this.list, thing.toLowerCase()));
		const changed = listen((kind) => (kind === "catalog" || kind === "back") && this.load());
		this.close = together(changed, again ? every(again, () => this.load()) : () => {}, () => this.list.close());
		this.load();
	}

	search(text) {
		this.needle = text;
		this.remember();
		this.draw();
	}

	remember() {
		const page = this.main.classList[1];
		const place = this.byHand ? `/${segment(this.byHand)}` : "";
		history.replaceState(null, "", `#/${page}${place}${query({ text: this.needle.trim(), ...this.kept })}`);
	}

	load() {
		const draw = (found) => {
			this.all = found;
			this.draw();
		};
		return this.loading(this.load_, draw, (error) => {
			draw([]);
			show(this.nothing, fault(error, () => this.load()));
		});
	}

	found() {
		const words = this.needle.toLowerCase().split(/\s+/).filter(Boolean);
		return this.all.filter((one) => {
			const text = this.text(one).toLowerCase();
			return words.every((word) => text.includes(word));
		});
	}

	grouped(found) {
		if (!this.group) return found;
		const groups = new Map();
		for (const one of found) {
			const name = this.group(one);
			if (!groups.has(name)) groups.set(name, []);
			groups.get(name).push(one);
		}
		if (groups.size < 2) return found;
		return [...groups].flatMap(([group, own]) => [{ group, size: many(own.length, this.thing.toLowerCase()) }, ...own]);
	}

	draw() {
		const found = this.found();
		listOrEmpty(this.list, this.grouped(found), this.nothing);
		if (!found.length) show(this.nothing, this.all.length ? empty(`No ${this.thing.toLowerCase()} fits`, "Try fewer words.") : this.none());
		const has = (name) => found.some((one) => this.key(one) === name);
		if (this.wanted && has(this.wanted)) {
			this.list.select(this.wanted, true);
			this.wanted = null;
		} else if (this.wanted && this.all.length) this.miss();
		else if (!this.shown && !this.wanted && found.length && isWide() && !this.busy) {
			this.list.select(this.key(found[0]));
		} else this.redraw();
	}

	// A link to something that is not there says so once; it is opened if it comes.
	miss() {
		if (this.missed) return;
		this.missed = true;
		this.view.open(fault(new Error(`There is no ${this.thing.toLowerCase()} ${this.wanted} here. Choose one in the list.`)));
	}

	selected() {
		return this.all.find((one) => this.key(one) === this.shown);
	}

	// Drawn only when there is something else to see, and never while somebody writes in it.
	redraw() {
		const one = this.selected();
		if (!one && this.shown) {
			this.shown = "";
			this.view.clear();
		}
		const { detail } = this.view;
		const typing = detail.contains(document.activeElement) && document.activeElement.matches(FIELDS);
		if (one && JSON.stringify(one) !== this.drawn && !typing) this.fill(one);
	}

	open(one, byHand = true) {
		this.busy = false;
		this.shown = this.key(one);
		if (byHand) {
			this.byHand = this.shown;
			this.remember();
		}
		this.view.turn(byHand);
		this.fill(one);
	}

	fill(one) {
		this.drawn = JSON.stringify(one);
		return this.telling(async () => this.told(one), this.view.fill, (error) => this.view.fill(fault(error, () => this.fill(one))));
	}

	instead(...children) {
		Object.assign(this, { busy: true, shown: "", byHand: "" });
		this.list.select(null);
		this.telling(() => {}, () => {});
		this.view.open(...children);
	}
}
