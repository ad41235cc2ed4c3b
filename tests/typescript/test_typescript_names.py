import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gate.surfaces.typescript.comments import doc
from agent_gate.surfaces.typescript.names import IDENTIFIER, camel, distinct, pascal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create_issue", "createIssue"),
        ("get-user-profile", "getUserProfile"),
        ("createIssue", "createIssue"),
        ("CreateIssue", "createIssue"),
        ("API", "api"),
        ("HTTPServer", "httpServer"),
        ("get_URL", "getURL"),
        ("my.api.server", "myApiServer"),
        ("123test", "_123test"),
        ("_private", "private"),
        ("GitHub", "gitHub"),
        ("H2O_level", "h2OLevel"),
        ("ünï code", "uniCode"),
        ("then", "_then"),
        ("__proto__", "proto"),
        ("名前", "tool"),
        ("", "tool"),
    ],
)
def test_a_name_becomes_camel_case_that_keeps_its_inner_capitals(text, expected):
    assert camel(text, "tool") == expected


def test_a_type_name_is_pascal_case():
    assert pascal("create_issue") == "CreateIssue"
    assert pascal("123x") == "_123x"


@given(st.text())
def test_every_name_becomes_an_identifier(text):
    assert IDENTIFIER.fullmatch(camel(text))
    assert IDENTIFIER.fullmatch(pascal(text))


def test_names_that_fold_together_get_suffixes_that_do_not_depend_on_their_order():
    names = ["get_item", "get-item", "other"]
    first = distinct(names, [camel(name) for name in names])
    second = distinct(names[::-1], [camel(name) for name in names[::-1]])
    assert dict(zip(names, first, strict=True)) == dict(zip(names[::-1], second, strict=True))
    assert len(set(first)) == 3
    assert all(re.fullmatch(r"getItem_[0-9a-f]{8}", name) for name in first[:2])
    assert first[2] == "other"


def test_the_one_that_is_spelled_as_generated_keeps_its_name():
    names = ["getItem", "get_item"]
    assert distinct(names, [camel(name) for name in names])[0] == "getItem"


@given(st.sets(st.text(max_size=6), max_size=20))
def test_different_names_never_share_an_identifier(names):
    ordered = sorted(names)
    found = distinct(ordered, [camel(name) for name in ordered])
    assert len(set(found)) == len(ordered)


@pytest.mark.parametrize(
    "text",
    [
        "*/ evil(); /*",
        "**/",
        "*\u2028/",
        "a\n*/\nb",
        "/",
        "*",
        "ends with *",
        "*\\/",
        "\r*/",
        "//# sourceMappingURL=x",
    ],
)
def test_a_description_cannot_end_its_comment(text):
    comment = doc(text)
    assert comment.startswith("/**")
    assert comment.rstrip().endswith("*/")
    assert comment.rstrip()[3:-2].find("*/") == -1
    assert "//#" not in comment


@given(st.text())
def test_no_text_ends_its_comment_or_breaks_its_encoding(text):
    comment = doc(text, "  ").strip()
    comment.encode()
    assert comment == "" or comment.index("*/") == len(comment) - 2


def test_a_directive_to_the_compiler_is_defused():
    assert "\\@ts-ignore" in doc("@ts-ignore")
    assert "\\@ts-types" in doc("text\n@ts-types='http://evil/'")
    assert "mail me@example.org" in doc("mail me@example.org")
