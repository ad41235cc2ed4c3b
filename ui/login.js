// Follows a one-time link: the secret behind # becomes a cookie and the key that goes with it.
import { keep } from "./session.js";

const said = document.getElementById("said");
const secret = location.hash.slice(1);

async function open() {
  history.replaceState(null, "", "/login");
  said.textContent = "Logging in…";
  const reply = await fetch("/api/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ link: secret }),
  });
  const body = await reply.json();
  if (!reply.ok) throw new Error(body.error.message);
  keep(body.key);
  location.replace("/");
}

if (secret) {
  open().catch((error) => {
    said.textContent = error.message;
    said.className = "fault";
  });
}
