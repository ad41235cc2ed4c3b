import pytest
from tests.discovery.tools import HOME, catalog, takes

from agent_gate.core.tool import Definition
from agent_gate.discovery.rank import Index, split
from agent_gate.discovery.stemmer import stem
from agent_gate.discovery.text import terms, words


@pytest.fixture(scope="module")
def index() -> Index:
    home = catalog(HOME)
    return Index(home.tools, home.titles())


def first(index: Index, query: str, limit: int = 1) -> list[str]:
    return [hit.tool.alias for hit in index.search(query, limit)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("createIssue", ["create", "issue"]),
        ("create_or-update.file", ["create", "or", "update", "file"]),
        ("HTTPServer2", ["http", "server", "2"]),
        ("list of URLs", ["list", "of", "urls"]),
        ("東京の天気", ["東京", "京の", "の天", "天気"]),
        ("Größe", ["größe"]),
        ("", []),
    ],
)
def test_words_are_split_as_people_read_them(text, found):
    assert words(text) == found


@pytest.mark.parametrize(
    ("forms", "root"),
    [("issue issues", "issu"), ("create creating created creates", "creat"), ("query queries querying", "queri"),
     ("translate translator translation", "translat"), ("chart charts charting", "chart"), ("relational", "relat"),
     ("hopping", "hop"), ("sky", "sky"), ("größe", "größe")],
)  # fmt: skip
def test_the_forms_of_a_word_share_a_root(forms, root):
    assert {stem(form) for form in forms.split()} == {root}


def test_fillers_carry_no_meaning():
    assert terms("could you please help me with the") == []


@pytest.mark.parametrize(
    ("query", "alias"),
    [
        ("will it rain in Oslo", "weather:get_forecast"),
        ("report a bug in the repo", "github:create_issue"),
        ("make a new folder", "files:create_directory"),
        ("draw a graph of these cells", "sheets:create_chart"),
        ("open a PR", "github:create_pull_request"),
        ("wether forcast", "weather:get_forecast"),
        ("reda a flie", "files:read_file"),
        ("githb isue", "github:create_issue"),
        ("CREATE_ISSUE", "github:create_issue"),
        ("directorio", "files:create_directory"),
    ],
)
def test_the_right_tool_comes_first_in_other_words(index, query, alias):
    assert first(index, query) == [alias]


def test_argument_names_and_server_descriptions_are_searched():
    both = catalog(
        {
            "a": [Definition(name="run", description="Runs.", input_schema=takes(iban="Account"))],
            "b": [Definition(name="go")],
        },
        {"b": "Everything about lighthouses"},
    )
    index = Index(both.tools, both.titles())
    assert first(index, "iban") == ["a:run"]
    assert first(index, "lighthouse") == ["b:go"]


def test_a_short_form_stands_for_its_words():
    both = catalog(
        {"a": [Definition(name="list_pages"), Definition(name="list_pull_requests")]},
    )
    assert first(Index(both.tools, both.titles()), "list the PRs") == ["a:list_pull_requests"]


def test_news_are_not_what_is_new():
    both = catalog({"a": [Definition(name="new_page"), Definition(name="read_headlines")]})
    assert first(Index(both.tools, both.titles()), "the news of today") == ["a:read_headlines"]


def test_a_request_for_a_tool_asks_for_what_the_tool_does():
    both = catalog(
        {"a": [Definition(name="delete_file"), Definition(name="find_file"), Definition(name="list_tools")]},
    )
    index = Index(both.tools, both.titles())
    assert first(index, "find a tool that lets me delete a file") == ["a:delete_file"]
    assert first(index, "list the tools") == ["a:list_tools"]


def test_a_part_that_names_nothing_is_about_the_part_before():
    both = catalog(
        {
            "a": [
                Definition(name="save_image"),
                Definition(name="save_workbook"),
                Definition(name="take_image"),
            ]
        },
    )
    index = Index(both.tools, both.titles())
    assert set(first(index, "take an image and save it", 2)) == {"a:take_image", "a:save_image"}


def test_each_part_of_a_request_is_served(index):
    found = first(index, "import the csv and then chart it", 2)
    assert set(found) == {"sheets:import_csv", "sheets:create_chart"}
    found = first(index, "read the notes from disk, then tell me the weather forecast", 2)
    assert set(found) == {"files:read_file", "weather:get_forecast"}


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("get X data and then chart it", ["get X data", "chart it x data"]),
        ("salt and pepper", []),
        ("black and white photo", []),
        ("find the file; delete the folder", ["find the file", "delete the folder"]),
        ("1. find the file 2) delete the folder", ["find the file", "delete the folder"]),
        ("take version 2.5 of it", []),
        ("read a file and create an issue", ["read a file", "create an issue"]),
        ("  read  a file ,\tand\n create   an issue ", ["read a file", "create an issue"]),
    ],
)
def test_requests_are_split_where_a_new_action_begins(query, parts):
    assert split(query) == parts


@pytest.mark.timeout(5)
@pytest.mark.parametrize("blank", [" ", "\u3000", " ,", ", then"])
def test_a_request_of_blanks_and_joints_takes_no_time(blank):
    many = blank * (2000 // len(blank))
    assert split(many) == []
    assert split(f"read a file{many} create an issue") in ([], ["read a file", "create an issue"])


def test_an_unseen_script_is_matched_by_its_letters():
    tools = catalog(
        {
            "jp": [
                Definition(name="a", description="東京の天気を調べる"),
                Definition(name="b", description="音楽を再生"),
            ]
        }
    )
    assert first(Index(tools.tools, {}), "天気は？") == ["jp:a"]


def test_scores_lie_between_nothing_and_one(index):
    scores = [hit.score for hit in index.search("create an issue and then read a file", 9)]
    assert all(0 < score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


def test_a_new_catalog_weighs_only_what_changed(index):
    changed = catalog({**HOME, "new": [Definition(name="brew_coffee", description="Brew coffee.")]})
    after = Index(changed.tools, changed.titles(), index)
    known = {document.tool.id: document for document in index.documents}
    kept = [document for document in after.documents if document.tool.id in known]
    assert len(kept) == len(index.documents)
    assert all(document.impacts is known[document.tool.id].impacts for document in kept)
    assert first(after, "coffee") == ["new:brew_coffee"]
    whole = Index(changed.tools, changed.titles())
    found, expected = (
        [(hit.tool.id, hit.score) for hit in which.search("create a file", 9)] for which in (after, whole)
    )
    assert found == expected


def test_an_empty_catalog_and_an_empty_query_find_nothing(index):
    assert Index([], {}).search("anything", 5) == []
    assert index.search("", 5) == []


@pytest.mark.parametrize(
    ("query", "right"),
    [("foreacst", "weather:get_forecast"), ("chrat", "sheets:create_chart"), ("repositorio", "github:")],
)
def test_a_word_that_no_tool_has_is_read_as_one_that_is_spelled_like_it(index, query, right):
    assert first(index, query)[0].startswith(right)
