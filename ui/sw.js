// The service worker: shows what is pushed, and opens what is tapped.
const shown = (data) => ({
	body: data.body,
	tag: data.tag,
	icon: "/icon.svg",
	silent: data.quiet,
	renotify: !data.quiet,
	requireInteraction: !data.quiet,
	data: { open: data.open },
});

// Only a place on this page is opened, whatever the message says.
const place = (open) => (/^\/#\/[\w/-]*$/.test(open) ? open : "/#/now");

async function openPage(path) {
	const windows = await self.clients.matchAll({ type: "window" });
	const page = windows.find((one) => new URL(one.url).pathname === "/");
	if (!page) return self.clients.openWindow(path);
	page.postMessage({ open: path });
	return page.focus();
}

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
	const data = event.data.json();
	event.waitUntil(self.registration.showNotification(data.title, shown(data)));
});

self.addEventListener("notificationclick", (event) => {
	event.notification.close();
	event.waitUntil(openPage(place(event.notification.data.open)));
});
