"""Two gateways on one PostgreSQL behind one address: any of them finishes a login that another began."""

from tests import postgres
from tests.gateway import running
from tests.oidc.agents_house import LEAVING, PersonWithAgent, auth
from tests.sign_in.conftest import files
from tests.sign_in.test_two_gateways_sign_in import ISSUER, SECRET, Balanced, seen
from tests.waiting import wait_until


def config(api, name, url, line):
    found = files(api)
    text = found["config.yaml"].replace("auth: {sign_in: true, client_documents: false}", line)
    text = text.replace("{port: 0}", f"{{port: 0, id: {name}, tenant: home}}", 1)
    text = text.replace(
        "storage: {type: sqlite, path: ./data/gate.db}", f'storage: {{type: postgres, url: "{url}"}}'
    )
    return found | {"config.yaml": text}


def test_any_gateway_finishes_a_login_and_each_ends_what_the_provider_ends(tmp_path, api, provider):
    url = postgres.server().clean_database()
    registered = provider.register(f"{ISSUER}/oidc/callback", base=ISSUER)
    line = auth(provider, registered, f'  public_url: "{ISSUER}"\n')
    provider.tell_of("anna", groups="sre")
    with (
        running(tmp_path / "one", config(api, "one", url, line), "--insecure", env=SECRET) as one,
        running(tmp_path / "two", config(api, "two", url, line), "--insecure", env=SECRET) as two,
    ):
        anna = PersonWithAgent(one, provider, "anna")
        anna.client.issuer = ISSUER
        anna.browser = browser = Balanced(ISSUER)
        browser.at = one
        shown = browser.get(anna.client.authorize_url())
        browser.at = two
        sent = browser.press_continue(shown, way="provider")
        browser.at = one
        back = anna.come_back(anna.there.consent(LEAVING.search(sent.text)[1].replace("&amp;", "&")))
        assert back.status == 303, back.text
        browser.at = two
        client = anna.redeem(back.location)
        wait_until(lambda: seen(one) and seen(one) == seen(two))
        for client.gate in (one, two):
            assert client.list_tools().status == 200
        assert client.refresh().status == 200
        client.gate = one
        assert client.refresh().status == 200
        provider.tell_of("anna", gone="yes")
        assert client.refresh().json["error"] == "invalid_grant"
        wait_until(lambda: not seen(one) and not seen(two))
        for client.gate in (one, two):
            assert client.list_tools().status == 401
