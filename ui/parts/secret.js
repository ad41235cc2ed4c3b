// Something that is shown this once, to be copied.
import { copyButton, h } from "../dom.js";

export const secret = (title, text, advice) =>
	h("div.secret", { role: "status" }, h("strong", title), h("code", text), h("p", advice), h("div.buttons", copyButton("Copy", () => text)));
