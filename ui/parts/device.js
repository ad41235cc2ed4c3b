// This device: whether the gateway's questions are shown on it while the page is closed.
import { get, post, remove, segment } from "../api.js";
import { button, fault, h, show } from "../dom.js";
import { may } from "../me.js";

const WORKER = "/sw.js";
const PATIENCE = 10_000; // milliseconds
// The one script address that this page ever makes; the content policy allows no other maker.
const policy = globalThis.trustedTypes?.createPolicy("worker", { createScriptURL: () => WORKER });
export const register = () => navigator.serviceWorker.register(policy ? policy.createScriptURL(WORKER) : WORKER);

function name() {
	const { platform, brands } = navigator.userAgentData ?? {};
	const brand = brands?.find((one) => !/not/i.test(one.brand))?.brand;
	return brand ? `${brand} on ${platform}` : navigator.userAgent.slice(0, 80);
}

async function subscribe(key) {
	if ((await Notification.requestPermission()) !== "granted")
		throw new Error("This browser does not let the page show messages. Allow notifications for it, then try again.");
	await register();
	const { pushManager } = await navigator.serviceWorker.ready;
	const late = new Promise((_, fail) => setTimeout(() => fail(new Error("The push service of this browser did not answer. Is this device online?")), PATIENCE));
	const made = await Promise.race([pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }), late]);
	const { endpoint: address, keys } = made.toJSON();
	return post("/api/devices", { name: name(), address, ...keys });
}

async function unsubscribe(id) {
	await remove(`/api/devices/${segment(id)}`);
	const registration = await navigator.serviceWorker?.getRegistration();
	await (await registration?.pushManager.getSubscription())?.unsubscribe();
}

function row(device, act) {
	return h(
		"tr",
		h("td", device.name),
		h("td", button("Try it", () => act(() => post(`/api/devices/${segment(device.id)}/try`)), { kind: "quiet" })),
		h("td", button("Tell it no more", () => act(() => unsubscribe(device.id)), { kind: "quiet" })),
	);
}

const offer = (key, act) =>
	"serviceWorker" in navigator && "PushManager" in window
		? button("Tell me on this device", () => act(() => subscribe(key)), { kind: "strong" })
		: h("p.soft", "This browser takes no push messages here: it wants https with a certificate that it trusts.");

export function devices() {
	const place = h("section.devices");
	const act = async (work) => {
		try {
			await work();
			await load();
		} catch (error) {
			show(place, ...place.childNodes, fault(error));
		}
	};
	async function load() {
		const { key, devices: mine } = await get("/api/devices");
		show(
			place,
			h("h2", "Your devices"),
			key && may("answer")
				? [
						h("p", "Questions reach you while this page is closed. Tapping one opens it here."),
						mine.length ? h("table", h("tbody", mine.map((device) => row(device, act)))) : null,
						h("div.buttons", offer(key, act)),
					]
				: key
					? h("p.soft", "Push messages go to people who may answer.")
					: h("p.soft", "Push messages are off. To switch them on, add ", h("code", "{type: push}"), " to channels in config.yaml."),
		);
	}
	act(load);
	return place;
}
