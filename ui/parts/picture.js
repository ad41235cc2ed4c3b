// A picture of the admin API: fetched with the session's key, which the address of an image cannot carry.
import { blob } from "../api.js";
import { h } from "../dom.js";

export function picture(path, alt) {
	const image = h("img.picture", { alt });
	const put = (found) => {
		const url = URL.createObjectURL(found);
		image.onload = () => URL.revokeObjectURL(url);
		image.src = url;
	};
	blob(path).then(put, () => image.remove());
	return image;
}
