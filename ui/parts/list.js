// A list that draws only the rows in view, so that ten thousand cost what thirty do.
import { h } from "../dom.js";

const SPARE = 8;
const CONTROLS = "a, button, input";
const RELEASES = ["pointerup", "pointercancel", "contextmenu"]; // a menu takes the release for itself

export class List {
	// Rows that have controls of their own are `cells` of a grid; others are the options of a list.
	constructor({ row, key, onSelect = () => {}, label, onEnd = () => {}, height = "--row", cells = false }) {
		Object.assign(this, { row, key, onSelect, onEnd, height, cells, items: [], selected: null, pressed: false });
		this.over = new AbortController();
		this.ends = { signal: this.over.signal };
		this.sheet = h("div.sheet", { role: cells ? "rowgroup" : "presentation" });
		this.node = h("div.list", { role: cells ? "grid" : "listbox", tabIndex: 0, "aria-label": label }, this.sheet);
		this.drawn = new Map();
		this.node.addEventListener("scroll", () => this.later(), { passive: true });
		this.node.addEventListener("click", (event) => this.clicked(event));
		this.sheet.addEventListener("pointerdown", (event) => this.press(event.button === 0));
		for (const end of RELEASES) addEventListener(end, () => this.press(false), this.ends);
		this.watch = new ResizeObserver(() => this.later());
		this.watch.observe(this.node);
	}

	close() {
		this.watch.disconnect();
		this.over.abort();
	}

	// A row that is replaced between press and release is never clicked, so new ones wait for the release.
	press(down) {
		this.pressed = down;
		if (!down && this.stale) this.later();
	}

	clicked(event) {
		const found = event.target.closest("[data-key]");
		if (found && !event.target.closest(CONTROLS)) this.select(found.dataset.key, true);
	}

	set(items) {
		this.items = items;
		this.places = new Map(items.map((item, index) => [this.key(item), index]));
		this.stale = true;
		if (this.tall) this.later();
		else this.draw();
	}

	later() {
		if (this.waiting) return;
		this.waiting = requestAnimationFrame(() => {
			this.waiting = 0;
			this.draw();
		});
	}

	rowHeight() {
		return parseFloat(getComputedStyle(this.node).getPropertyValue(this.height)) || 44;
	}

	draw() {
		if (this.pressed && this.stale) return;
		const tall = this.rowHeight();
		const held = this.stale ? this.held() : null;
		if (this.stale || tall !== this.tall) for (const node of this.drawn.values()) node.remove();
		if (this.stale || tall !== this.tall) this.drawn.clear();
		this.stale = false;
		this.tall = tall;
		this.sheet.style.height = `${this.items.length * tall}px`;
		const first = Math.max(0, Math.floor(this.node.scrollTop / tall) - SPARE);
		const last = Math.min(this.items.length, Math.ceil((this.node.scrollTop + this.node.clientHeight) / tall) + SPARE);
		for (const [index, node] of this.drawn) {
			if (index < first || index >= last) {
				node.remove();
				this.drawn.delete(index);
			}
		}
		for (let index = first; index < last; index += 1) if (!this.drawn.has(index)) this.place(index);
		if (held) this.hold(...held);
		if (last >= this.items.length - SPARE && this.items.length) this.onEnd();
	}

	// The control in a row that has the keyboard, to find it again in the row that replaces this one.
	held() {
		const node = document.activeElement;
		const row = this.sheet.contains(node) ? node.closest("[data-key]") : null;
		return row && [row.dataset.key, [...row.querySelectorAll(CONTROLS)].indexOf(node)];
	}

	hold(key, number) {
		const row = this.drawn.get(this.places.get(key));
		row?.querySelectorAll(CONTROLS)[number]?.focus({ preventScroll: true });
	}

	place(index) {
		const item = this.items[index];
		const node = this.row(item);
		const key = this.key(item);
		node.classList.add("row");
		node.dataset.key = key;
		node.id = `row-${key}`;
		node.setAttribute("aria-selected", key === this.selected);
		if (this.cells) this.asRow(node, index);
		else this.asOption(node, index);
		node.style.transform = `translateY(${index * this.tall}px)`;
		this.sheet.append(node);
		this.drawn.set(index, node);
	}

	asOption(node, index) {
		node.setAttribute("role", "option");
		node.setAttribute("aria-setsize", this.items.length);
		node.setAttribute("aria-posinset", index + 1);
	}

	asRow(node, index) {
		node.setAttribute("role", "row");
		node.setAttribute("aria-rowindex", index + 1);
		for (const cell of node.children) cell.setAttribute("role", "gridcell");
		this.node.setAttribute("aria-rowcount", this.items.length);
	}

	select(key, byHand = false) {
		this.selected = key;
		for (const node of this.drawn.values()) node.setAttribute("aria-selected", node.dataset.key === key);
		this.node.setAttribute("aria-activedescendant", key === null ? "" : `row-${key}`);
		const item = this.items[this.places?.get(key)];
		if (item) this.onSelect(item, byHand);
	}

	move(by) {
		if (!this.items.length) return;
		const here = this.places.get(this.selected) ?? (by > 0 ? -1 : this.items.length);
		const there = Math.max(0, Math.min(this.items.length - 1, here + by));
		this.reveal(there);
		this.select(this.key(this.items[there]), true);
	}

	reveal(index) {
		const tall = this.rowHeight();
		const [top, bottom] = [index * tall, (index + 1) * tall];
		if (top < this.node.scrollTop) this.node.scrollTop = top;
		else if (bottom > this.node.scrollTop + this.node.clientHeight)
			this.node.scrollTop = bottom - this.node.clientHeight;
		this.draw();
	}
}

export function listOrEmpty(list, items, nothing) {
	list.node.hidden = !items.length;
	nothing.hidden = Boolean(items.length);
	list.set(items);
}
