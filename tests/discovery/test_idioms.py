"""What people say in several words, and the names of servers, are read as what tools call them."""

import pytest
from tests.discovery.tools import catalog

from agent_gate.core.tool import Definition
from agent_gate.discovery.browse import Browser
from agent_gate.discovery.rank import Index
from agent_gate.discovery.thesaurus import Idioms, idioms
from agent_gate.errors import PathInvalid

SERVERS = {
    "memory": {
        "create_entities": "Create multiple new entities in the knowledge graph",
        "add_observations": "Add new observations to existing entities in the knowledge graph",
        "delete_observations": "Delete specific observations from entities in the knowledge graph",
    },
    "github": {"get_pull_request_status": "Get the combined status of all status checks for a pull request"},
    "git": {"git_status": "Shows the working tree status", "git_log": "Shows the commit logs"},
    "notion": {"API-query-data-source": "Notion | Query a data source"},
    "sqlite": {
        "read_query": "Execute a SELECT query on the SQLite database",
        "write_query": "Execute an INSERT, UPDATE, or DELETE query on the SQLite database",
    },
    "excel": {
        "write_range": "Write values into cells, overwriting them, whatever the sheet's protection.",
        "create_chart": "Add or replace a chart. Returns its name and cells.",
        "create_sheet": "Add an empty worksheet.",
        "delete_chart": "Remove a chart; its data stays.",
    },
    "calc": {"calculate": "Calculates/evaluates the given expression."},
    "filesystem": {
        "write_file": "Create a new file or completely overwrite an existing file with new content."
    },
    "word": {
        "create_document": "Create a new Word document with optional metadata.",
        "add_paragraph": "Add a paragraph to a Word document with optional formatting.",
        "format_text": "Format a specific range of text within a paragraph.",
        "get_document_text": "Extract all text from a Word document.",
    },
}
CATALOG = catalog(
    {
        server: [Definition(name=name, description=text) for name, text in tools.items()]
        for server, tools in SERVERS.items()
    }
)


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("remember that I prefer tea", "memory:add_observations"),
        ("count orders by status", "sqlite:read_query"),
        ("write a letter in Word", "word:create_document"),
        ("add a chart to the spreadsheet", "excel:create_chart"),
        ("what is 17*23+4", "calc:calculate"),
        ("add two numbers", "calc:calculate"),
    ],
)
def test_everyday_requests_find_their_tool_among_the_first_three_of_real_servers(query, right):
    found = [hit.tool.alias for hit in Index(CATALOG.tools, CATALOG.titles()).search(query, 3)]
    assert right in found


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("throw the old drafts away", "delete the old drafts"),
        ("throw out the drafts", "delete the drafts"),
        ("give the ticket to Anna", "assign the ticket to Anna"),
        ("give me the ticket", "get the ticket"),
        ("open a bug report in ABC", "create a bug report in ABC"),
        ("push the submit button", "click the submit button"),
        ("Get rid of it", "delete it"),
        ("add up the figures", "sum calculate the figures"),
        ("open the door", "open the door"),
    ],
)
def test_an_idiom_is_read_as_the_plain_word(said, plain):
    assert idioms().plain(said) == plain


def test_reading_idioms_takes_time_in_proportion_to_the_text():
    said = Idioms("take … out = remove …\nput … into|in = add … to\n")
    text = "take put " * 20_000
    assert said.plain(text) == text


def test_a_request_that_names_a_server_means_its_tools():
    made = catalog(
        {name: [Definition(name="send", description="Send a message")] for name in ("slack", "zulip")}
    )
    for name in ("slack", "zulip"):
        [best, *_] = Index(made.tools, made.titles()).search(f"message my team on {name}", 2)
        assert best.tool.namespace == name


def test_the_id_that_a_card_shows_is_a_path_too():
    browser = Browser(CATALOG.tools, CATALOG.titles())
    for path in ("notion:API-query-data-source", "/notion/api-query-data-source"):
        [card] = browser.path(path)
        assert card.id.startswith("notion:API-query-data-source")
        assert browser.leaf(path) is not None
    [card] = browser.path(card.id)
    with pytest.raises(PathInvalid):
        browser.path("notion:no-such-tool")


def test_a_tool_is_found_below_its_server_by_who_does_not_know_its_cluster():
    many = [
        Definition(name=f"{verb}_{thing}")
        for verb in ("get", "add", "drop")
        for thing in map("thing{}".format, range(9))
    ]
    browser = Browser(catalog({"lab": many}).tools, {})
    assert browser.leaf("/lab/get_thing3") is not None
