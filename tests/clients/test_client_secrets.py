import pytest

from agent_gate.config.clients.secrets import move_secrets


@pytest.mark.parametrize(
    ("entry", "expected", "moved"),
    [
        ({"env": {"GITHUB_TOKEN": "ghp_x"}}, {"env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}}, {"GITHUB_TOKEN": "ghp_x"}),
        ({"env": {"LANG": "C", "DEBUG": "1"}}, {"env": {"LANG": "C", "DEBUG": "1"}}, {}),
        ({"env": {"API_KEY": "${API_KEY}"}}, {"env": {"API_KEY": "${API_KEY}"}}, {}),
        ({"env": {"OTHER": "sk-0123456789abcdef"}}, {"env": {"OTHER": "${OTHER}"}}, {"OTHER": "sk-0123456789abcdef"}),
        ({"env": {"DB": "postgres://a:pw@h/d"}}, {"env": {"DB": "postgres://a:${DB_PASSWORD}@h/d"}}, {"DB_PASSWORD": "pw"}),
        (
            {"headers": {"Authorization": "Bearer abc", "Accept": "x"}},
            {"headers": {"Authorization": "Bearer ${MY_SRV_AUTHORIZATION}", "Accept": "x"}},
            {"MY_SRV_AUTHORIZATION": "abc"},
        ),
        (
            {"args": ["--api-key", "k1", "--token=k2", "--port", "80", "ghp_0123456789abcdefghijkl", "path"]},
            {"args": ["--api-key", "${MY_SRV_API_KEY}", "--token=${MY_SRV_TOKEN}", "--port", "80",
                      "${MY_SRV_ARGUMENT}", "path"]},
            {"MY_SRV_API_KEY": "k1", "MY_SRV_TOKEN": "k2", "MY_SRV_ARGUMENT": "ghp_0123456789abcdefghijkl"},
        ),
        (
            {"url": "https://u:p%40w@h/mcp?api_key=k%20y&page=2"},
            {"url": "https://u:${MY_SRV_PASSWORD}@h/mcp?api_key=${MY_SRV_API_KEY}&page=2"},
            {"MY_SRV_PASSWORD": "p%40w", "MY_SRV_API_KEY": "k y"},
        ),
        (
            {"args": ["run", "-e", "API_KEY=k1", "-e", "LANG=C", "--env=DB_PWD=k2", "-e", "GITHUB_TOKEN", "image:1"]},
            {"args": ["run", "-e", "API_KEY=${MY_SRV_API_KEY}", "-e", "LANG=C", "--env=DB_PWD=${MY_SRV_DB_PWD}",
                      "-e", "GITHUB_TOKEN", "image:1"]},
            {"MY_SRV_API_KEY": "k1", "MY_SRV_DB_PWD": "k2"},
        ),
        (
            {"args": ["https://h/mcp?api_key=k1", "--header", "Authorization: Bearer k2", "--header", "X-Key:k3"]},
            {"args": ["https://h/mcp?api_key=${MY_SRV_API_KEY}", "--header",
                      "Authorization: Bearer ${MY_SRV_AUTHORIZATION}", "--header", "X-Key:${MY_SRV_X_KEY}"]},
            {"MY_SRV_API_KEY": "k1", "MY_SRV_AUTHORIZATION": "k2", "MY_SRV_X_KEY": "k3"},
        ),
        (
            {"env": {"HEADERS": '{"Authorization": "Bearer 0123456789"}', "DB": "postgres://a:p@w@h/d"}},
            {"env": {"HEADERS": "${HEADERS}", "DB": "postgres://a:${DB_PASSWORD}@h/d"}},
            {"HEADERS": '{"Authorization": "Bearer 0123456789"}', "DB_PASSWORD": "p@w"},
        ),
        ({"args": ["C:\\x", "a=b=c", "http://h:1/x", "=" * 9000, "a=" * 9000]},
         {"args": ["C:\\x", "a=b=c", "http://h:1/x", "=" * 9000, "a=" * 9000]}, {}),
    ],
)  # fmt: skip
def test_literal_secrets_become_references(entry, expected, moved):
    assert move_secrets("my-srv", entry) == (expected, moved)


def test_two_servers_with_one_name_and_two_values_do_not_share_a_variable():
    entry, moved = move_secrets("b", {"env": {"API_KEY": "two"}}, {"API_KEY": "one"})
    assert entry["env"]["API_KEY"] == "${B_API_KEY}"
    assert moved == {"B_API_KEY": "two"}


def test_two_servers_with_one_value_share_it():
    _, moved = move_secrets("b", {"env": {"API_KEY": "one"}}, {"API_KEY": "one"})
    assert moved == {"API_KEY": "one"}


def test_the_original_entry_stays_as_it_was():
    entry = {"env": {"TOKEN": "x"}, "args": ["--key", "y"]}
    move_secrets("s", entry)
    assert entry == {"env": {"TOKEN": "x"}, "args": ["--key", "y"]}
