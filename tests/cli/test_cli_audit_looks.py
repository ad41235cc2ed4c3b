"""`agent-gate audit tail` on a long record: it goes on until it has what was asked for, and says how far it is."""

from agent_gate.cli.commands.audit import look_back


class LongRecord:
    """Answers as a gateway does whose searches come to the end of their time."""

    def __init__(self, *pages):
        self.pages, self.asked = list(pages), []

    def get(self, path):
        self.asked.append(path)
        return self.pages.pop(0)


def test_it_goes_on_where_the_search_before_ended(capsys):
    pages = (
        {"rows": [], "next": "ab", "back_to": 1_780_000_000.0},
        {"rows": [{"seq": 9}], "next": "cd", "back_to": 1_770_000_000.0},
        {"rows": [{"seq": 2}], "next": None, "back_to": None},
    )
    client = LongRecord(*pages)
    assert look_back(client, "&text=rare", 20) == [{"seq": 9}, {"seq": 2}]
    assert client.asked == [
        "/api/calls?limit=20&text=rare",
        "/api/calls?limit=20&text=rare&cursor=ab",
        "/api/calls?limit=19&text=rare&cursor=cd",
    ]
    assert capsys.readouterr().err.count("Looked back to ") == 2


def test_it_ends_with_as_many_rows_as_were_asked_for_and_with_gateways_of_before():
    enough = {"rows": [{"seq": 9}], "next": "ab", "back_to": 1_780_000_000.0}
    assert look_back(LongRecord(enough), "", 1) == [{"seq": 9}]
    assert look_back(LongRecord({"rows": [], "next": None}), "", 1) == []
