"""Two gateways on one PostgreSQL behind one address: any of them finishes a sign-in that another began."""

from tests import postgres
from tests.gateway import running
from tests.sign_in.conftest import files
from tests.sign_in.small_client import SmallBrowser, SmallClient, follow, say_yes
from tests.waiting import wait_until

ISSUER = "http://127.0.0.1:9"
SECRET = {"AGENT_GATE_SECRET": "a passphrase that both gateways have"}


def config(api, name, url):
    found = files(api)
    text = found["config.yaml"].replace("sign_in: true", f'sign_in: true, public_url: "{ISSUER}"')
    text = text.replace("{port: 0}", f"{{port: 0, id: {name}, tenant: home}}", 1)
    text = text.replace(
        "storage: {type: sqlite, path: ./data/gate.db}", f'storage: {{type: postgres, url: "{url}"}}'
    )
    return found | {"config.yaml": text}


class Balanced(SmallBrowser):
    """Goes to whichever gateway it is told to, under the one address of both."""

    def request(self, method, path, form=None, headers=None):
        issuer, self.issuer = self.issuer, self.at.url
        try:
            return super().request(
                method, path, form, {"Origin": ISSUER} | (headers or {}) if form else headers
            )
        finally:
            self.issuer = issuer


def seen(gate):
    """When each agent that signed in was seen, as this gateway knows it."""
    agents = gate.admin.get("/api/agents")
    return {agent["name"]: agent["signed_in"]["last_seen"] for agent in agents if agent["signed_in"]}


def test_any_gateway_finishes_what_another_began(tmp_path, api):
    url = postgres.server().clean_database()
    with (
        running(tmp_path / "one", config(api, "one", url), "--insecure", env=SECRET) as one,
        running(tmp_path / "two", config(api, "two", url), "--insecure", env=SECRET) as two,
    ):
        client = SmallClient(one, issuer=ISSUER)
        assert client.register().status == 201
        browser = Balanced(ISSUER)
        browser.at = one
        shown = browser.get(client.authorize_url())
        browser.at = two
        place = browser.press_continue(shown).location
        browser.at = one
        number = browser.get(place).number
        wait_until(lambda: one.admin.get("/api/approvals"))
        say_yes(one, number)
        browser.at = two
        code = follow(browser, place).answer()["code"]
        assert client.redeem(code).status == 200
        client.gate = two
        wait_until(lambda: seen(one) and seen(two) == seen(one))
        assert client.refresh().status == 200
        client.gate = one
        wait_until(lambda: seen(two) == seen(one))
        assert client.list_tools().status == 200
        two.admin.request("DELETE", "/api/agents/tester%2Foperator")
        wait_until(lambda: not seen(one))
        assert client.list_tools().status == 401
