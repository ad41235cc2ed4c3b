"""A client signs in: documents, the page, a person's yes with the number, a code, tokens, and what they open."""

import pytest
from tests.sign_in.small_client import SmallBrowser, SmallClient, begin, follow, question, say_yes, sign_in
from tests.waiting import PATIENCE


def test_a_client_signs_in_and_its_tools_are_there(gate):
    client = SmallClient(gate, name="Claude")
    assert client.register().status == 201
    browser, place = begin(client)
    waiting = browser.get(place)
    asked = question(gate)
    assert asked["agent"] == "sign-in"
    assert "Claude" in asked["sentence"]
    assert asked["wants_number"]
    say_yes(gate, waiting.number)
    told = follow(browser, place)
    assert told.location.startswith(client.callback)
    answer = told.answer()
    assert (answer["state"], answer["iss"]) == (client.state, gate.url)
    given = client.redeem(answer["code"])
    assert given.status == 200
    assert given.headers["cache-control"] == "no-store"
    assert given.json["token_type"] == "Bearer"
    listed = client.list_tools()
    assert listed.status == 200
    assert {tool["name"] for tool in listed.json["result"]["tools"]} >= {"home_act", "notes_write"}


def test_the_documents_name_the_gateway_itself_for_each_path(gate):
    for path in ("/mcp", "/mcp/full", "/mcp/proxy", "/mcp/gateway"):
        found = gate.request("GET", f"/.well-known/oauth-protected-resource{path}", token=None).json
        assert found["resource"] == f"{gate.url}{path}"
        assert found["authorization_servers"] == [gate.url]
        assert found["scopes_supported"] == ["mcp"]
    assert gate.request("GET", "/.well-known/oauth-protected-resource", token=None).json["resource"] == (
        f"{gate.url}/mcp"
    )
    assert gate.request("GET", "/.well-known/oauth-protected-resource/else", token=None).status == 404
    documents = [
        gate.request("GET", f"/.well-known/{name}", token=None).json
        for name in ("oauth-authorization-server", "openid-configuration")
    ]
    assert documents[0] == documents[1]
    assert documents[0]["issuer"] == gate.url
    for name in ("authorize", "token", "register", "revoke"):
        assert f"{gate.url}/{name}" in documents[0].values()
    assert documents[0]["code_challenge_methods_supported"] == ["S256"]
    assert "offline_access" not in str(documents)


def test_a_request_without_a_token_is_told_where_to_sign_in(gate):
    client = SmallClient(gate)
    nobody = gate.request("POST", "/mcp", b"{}", token=None, headers={"Content-Type": "application/json"})
    assert nobody.status == 401
    assert nobody.headers["www-authenticate"] == (
        f'Bearer realm="agent-gate", resource_metadata="{gate.url}/.well-known/oauth-protected-resource/mcp", '
        'scope="mcp"'
    )
    wrong = client.list_tools("aga_" + "x" * 40, "/mcp/full")
    assert 'error="invalid_token"' in wrong.headers["www-authenticate"]
    assert "/.well-known/oauth-protected-resource/mcp/full" in wrong.headers["www-authenticate"]


def test_looking_at_the_page_changes_nothing_and_it_says_who_asks(gate):
    client = SmallClient(gate, name="Claude <b>bold</b>", callback="https://claude.ai/api/mcp/auth_callback")
    client.register()
    browser = SmallBrowser(gate.url)
    shown = browser.get(client.authorize_url())
    assert shown.status == 200
    assert gate.admin.get("/api/approvals") == []
    text = shown.text
    assert text.index("claude.ai") < text.index("The answer will be sent to") < text.index("calls itself")
    assert "Claude &lt;b&gt;bold&lt;/b&gt;” <small>(unverified)" in text
    assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]
    assert shown.headers["x-frame-options"] == "DENY"
    assert "<script" not in text


def test_a_yes_can_make_it_narrower_and_the_agent_is_a_row_like_any_other(gate):
    terms = {"agent": "tester/ada", "namespaces": ["notes"], "mode": "proxy", "days": 7}
    client = sign_in(gate, terms=terms)
    tools = {
        tool["name"] for tool in client.list_tools(path="/mcp/full").json.get("result", {}).get("tools", [])
    }
    assert "home_act" not in tools
    row = next(one for one in gate.admin.get("/api/agents") if one["name"] == "tester/ada")
    assert (row["mode"], row["namespaces"]) == ("proxy", ["notes"])
    assert row["signed_in"]["client"] == "localhost"
    assert row["signed_in"]["person"] == "operator"
    assert row["signed_in"]["expires_at"] - row["signed_in"]["since"] == pytest.approx(7 * 86_400, abs=5)
    assert client.tokens["scope"] == "mcp mcp:notes"


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"agent": "pi"}, "client/person"),
        ({"days": 91}, "at most 90"),
        ({"days": 0}, "above 0"),
        ({"mode": "root"}, "mode is one of"),
        ({"namespaces": []}, "list of names"),
        ({"color": "red"}, "can be said"),
    ],
)
def test_terms_that_do_not_fit_are_refused_and_the_question_stays(gate, terms, why):
    client = SmallClient(gate)
    client.register()
    browser, place = begin(client)
    with pytest.raises(Exception, match=why):
        say_yes(gate, browser.get(place).number, terms=terms)
    assert question(gate)["state"] == "pending"


def test_a_no_sends_the_browser_back_without_a_code(gate):
    client = SmallClient(gate)
    client.register()
    browser, place = begin(client)
    gate.answer("deny")
    told = follow(browser, place).answer()
    assert (told["error"], told["state"], told["iss"]) == ("access_denied", client.state, gate.url)
    assert "code" not in told


def test_pressing_continue_twice_is_one_question(gate):
    client = SmallClient(gate)
    client.register()
    browser, place = begin(client)
    again, same = begin(client, browser)
    assert (again, same) == (browser, place)
    question(gate)


def test_a_sign_in_is_on_record_as_a_call(gate):
    client = SmallClient(gate)
    client.register()
    browser, place = begin(client)
    asked = question(gate)
    say_yes(gate, browser.get(place).number)
    follow(browser, place)
    assert gate.story(asked["call"]) == ["pending", "approved", "dispatching", "completed"]
    assert asked["tool_id"].startswith("agents:sign_in")


def test_the_same_words_give_the_same_client_whatever_port_it_listens_on(gate):
    first = SmallClient(gate, name="Ports", callback="http://localhost:1111/callback")
    second = SmallClient(gate, name="Ports", callback="http://localhost:2222/callback")
    assert first.register().json["redirect_uris"] == ["http://localhost:1111/callback"]
    assert second.register().json["redirect_uris"] == ["http://localhost:2222/callback"]
    assert first.client_id == second.client_id
    shown = SmallBrowser(gate.url).get(second.authorize_url(redirect_uri="http://localhost:3333/callback"))
    assert shown.status == 200


@pytest.mark.parametrize(
    ("addresses", "used", "asks_for"),
    [
        (
            [
                "cursor://anysphere.cursor-mcp/oauth/callback",
                "https://www.cursor.com/agents/mcp/oauth/callback",
                "http://localhost:8787/callback",
            ],
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "cursor:",
        ),
        (
            [
                "https://vscode.dev/redirect",
                "https://insiders.vscode.dev/redirect",
                "http://127.0.0.1/",
                "http://127.0.0.1:33418/",
            ],
            "http://127.0.0.1:51234/",
            "localhost",
        ),
        (["http://127.0.0.1:40123/oauth_callback"], "http://127.0.0.1:40999/oauth_callback", "localhost"),
    ],
    ids=["cursor", "vscode", "goose"],
)
def test_an_editor_registers_all_its_addresses_at_once_and_is_answered_at_the_one_it_names(
    gate, addresses, used, asks_for
):
    client = SmallClient(gate, name="Editor", callback=used)
    registered = client.register(redirect_uris=addresses)
    assert (registered.status, registered.json["redirect_uris"]) == (201, addresses)
    assert "client_secret" not in registered.json
    browser, place = begin(client)
    assert question(gate)["arguments"]["destination"] == asks_for
    say_yes(gate, browser.get(place).number)
    told = follow(browser, place)
    assert told.location.startswith(f"{used}?code=")
    assert client.redeem(told.answer()["code"]).status == 200


def test_a_client_of_another_origin_may_use_the_endpoints_and_nothing_else(gate):
    foreign = {"Origin": "https://client.example"}
    for path in ("/token", "/register", "/revoke", "/.well-known/oauth-authorization-server"):
        asked = gate.request("OPTIONS", path, token=None, headers=foreign)
        assert (asked.status, asked.headers["access-control-allow-origin"]) == (204, "*")
        assert "access-control-allow-credentials" not in asked.headers
    told = gate.request("POST", "/token", b"", token=None, headers=foreign)
    assert (told.status, told.headers["access-control-allow-origin"]) == (400, "*")
    for path in ("/authorize", "/authorize/wait", "/mcp", "/api/tools", "/invite/x"):
        refused = gate.request("GET", path, token=None, headers=foreign)
        assert refused.status == 403
        assert "access-control-allow-origin" not in refused.headers


def test_a_refresh_gives_the_next_pair_and_the_old_access_token_still_has_its_hour(gate):
    client = sign_in(gate)
    first = dict(client.tokens)
    assert client.refresh().status == 200
    assert client.tokens["refresh_token"] != first["refresh_token"]
    assert client.list_tools().status == 200
    assert client.list_tools(first["access_token"]).status == 200


def test_a_refresh_token_that_is_sent_twice_within_the_grace_gives_a_fresh_pair_of_the_same_family(gate):
    client = sign_in(gate)
    old = client.tokens["refresh_token"]
    one = client.refresh(old).json
    two = client.refresh(old).json
    assert one["access_token"] != two["access_token"]
    assert (
        client.list_tools(one["access_token"]).status == client.list_tools(two["access_token"]).status == 200
    )
    assert client.post_form("/revoke", {"token": one["refresh_token"]}).status == 200
    assert client.list_tools(two["access_token"]).status == 401


def test_a_client_that_gives_its_token_back_is_out_and_an_unknown_token_is_no_error(gate):
    client = sign_in(gate)
    assert client.post_form("/revoke", {"token": "agr_" + "x" * 43}).status == 200
    assert client.post_form("/revoke", {"token": client.tokens["refresh_token"]}).status == 200
    assert client.list_tools().status == 401
    assert client.refresh().json["error"] == "invalid_grant"


def test_a_revoked_agent_is_out_at_once_with_its_session_and_its_stream(gate):
    client = sign_in(gate, terms={"agent": "revoked/ada"})
    started = client.mcp(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        }
    )
    session = started.headers["mcp-session-id"]
    with open_stream(gate, client, session) as stream:
        gate.admin.request("DELETE", "/api/agents/revoked%2Fada")
        assert stream.read() == b"" or stream.isclosed()
    assert client.list_tools().status == 401
    assert client.refresh().json["error"] == "invalid_grant"
    assert all(one["name"] != "revoked/ada" for one in gate.admin.get("/api/agents"))


def open_stream(gate, client, session):
    import http.client
    from contextlib import contextmanager

    @contextmanager
    def opened():
        connection = http.client.HTTPConnection(gate.url.removeprefix("http://"), timeout=PATIENCE)
        headers = {
            "Authorization": f"Bearer {client.tokens['access_token']}",
            "Accept": "text/event-stream",
            "Mcp-Session-Id": session,
            "MCP-Protocol-Version": "2025-11-25",
        }
        connection.request("GET", "/mcp", headers=headers)
        reply = connection.getresponse()
        assert reply.status == 200
        try:
            yield reply
        finally:
            connection.close()

    return opened()


def test_a_session_outlasts_the_token_it_was_opened_with(gate):
    client = sign_in(gate)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    started = client.mcp({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    client.refresh()
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
    assert client.mcp(listing, **{"Mcp-Session-Id": started.headers["mcp-session-id"]}).status == 200


def test_more_than_was_given_is_answered_with_the_scope_that_would_be_needed(gate):
    client = sign_in(gate, terms={"namespaces": ["notes"]})
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "home__act", "arguments": {}},
    }
    refused = client.mcp(call)
    assert refused.status == 403
    told = refused.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in told
    assert 'scope="mcp mcp:home mcp:notes"' in told
    call["params"]["name"] = "elsewhere__act"
    assert client.mcp(call).status == 200
    browser, place = begin(client, scope="mcp mcp:home mcp:notes")
    assert question(gate)["arguments"]["namespaces"] == ["home", "notes"]
    say_yes(gate, browser.get(place).number)
    client.redeem(follow(browser, place).answer()["code"])
    assert client.tokens["scope"] == "mcp mcp:home mcp:notes"


CALL_HOME = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


@pytest.mark.parametrize(
    ("path", "tool"),
    [("/mcp/proxy", "tool_execute"), ("/mcp/gateway", "tool_execute"), ("/mcp/proxy", "tool_hydrate")],
)
def test_a_meta_tool_that_names_a_tool_of_another_source_is_answered_with_the_scope_too(gate, path, tool):
    client = sign_in(gate, terms={"namespaces": ["notes"]})
    told = client.mcp(CALL_HOME | {"params": {"name": tool, "arguments": {"tool_id": "home:act"}}}, path=path)
    assert told.status == 403
    assert 'error="insufficient_scope", scope="mcp mcp:home mcp:notes"' in told.headers["www-authenticate"]
    for other in ("notes:act", "elsewhere:act"):
        params = {"name": tool, "arguments": {"tool_id": other}}
        assert client.mcp(CALL_HOME | {"params": params}, path=path).status == 200


@pytest.mark.parametrize("path", ["/mcp", "/mcp/gateway"])
def test_chatgpt_reads_in_the_result_what_its_sign_in_lacks(gate, path):
    callback = "https://chatgpt.com/connector_platform_oauth_redirect"
    client = sign_in(gate, name="ChatGPT", callback=callback, terms={"namespaces": ["notes"]})
    params = {"name": "home__act", "arguments": {}}
    if path != "/mcp":
        params = {"name": "tool_execute", "arguments": {"tool_id": "home:act"}}
    told = client.mcp(CALL_HOME | {"params": params}, path=path)
    assert told.status == 200
    result = told.json["result"]
    assert result["isError"]
    [challenge] = result["_meta"]["mcp/www_authenticate"]
    assert 'error="insufficient_scope", scope="mcp mcp:home mcp:notes"' in challenge
    assert f'resource_metadata="{gate.url}/.well-known/oauth-protected-resource/mcp"' in challenge


def test_tokens_for_mcp_open_nothing_else(gate):
    client = sign_in(gate)
    token = client.tokens["access_token"]
    assert client.list_tools(path="/mcp/full").status == 200
    for path in ("/api/tools", "/status", "/runtime/tools.ts"):
        assert gate.request("GET", path, token=token).status == 401
    other = sign_in(gate, resource=f"{gate.url}/mcp/proxy")
    assert other.list_tools(path="/mcp/proxy").status == 200
    assert other.list_tools(path="/mcp").status == 401


def test_an_invitation_gets_past_the_limits_once(gate):
    held = []
    while True:
        client = SmallClient(gate)
        if client.register().status != 201:
            break
        browser = SmallBrowser(gate.url)
        sent = browser.press_continue(browser.get(client.authorize_url()))
        if sent.status != 303:
            break
        held.append(client)
    assert sent.status == 429
    assert len(held) == 5
    made = gate.admin.request("POST", "/api/invites", {})
    assert browser.get(made["url"]).status == 200
    assert browser.press_continue(browser.get(client.authorize_url())).status == 303
    again = browser.press_continue(browser.get(client.authorize_url(state="another")))
    assert again.status == 429
