"""What people may do, by name: listed ones, those on channels, and nobody else."""

from agent_gate.access.people import People
from agent_gate.access.roles import EVERY_ANSWER, EVERYTHING, NOTHING, Rights, widest
from agent_gate.config.settings import Person


def people(**listed):
    return People(lambda: listed, lambda: {"oncall"}, lambda: None)


def test_who_is_listed_without_a_role_does_everything_as_before():
    assert people(anna=Person(name="anna")).rights("anna") == EVERYTHING


def test_a_name_that_nobody_has_may_do_nothing():
    assert people().rights("stranger") == NOTHING
    assert not people().known("stranger")
    assert not people().answers("stranger")


def test_a_name_that_only_a_channel_has_answers_there_and_does_not_come_to_the_page():
    known = people()
    assert known.rights("oncall") == EVERY_ANSWER
    assert known.answers("oncall")
    assert not known.known("oncall")


def test_a_listed_viewer_who_is_on_a_channel_too_stays_a_viewer():
    known = people(oncall=Person(name="oncall", role="viewer"))
    assert known.rights("oncall").may() == ["view"]
    assert not known.answers("oncall")


def test_a_remembered_answer_stops_counting_when_its_person_may_not_answer_any_more():
    roles = {"anna": Person(name="anna", role="approver")}
    known = People(lambda: roles, set, lambda: None)
    assert known.answers("anna")
    roles["anna"] = Person(name="anna", role="viewer")
    assert not known.answers("anna")


def test_who_is_in_several_groups_has_the_highest_role_and_all_their_namespaces():
    house, garden = (Rights("approver", frozenset({name})) for name in ("house", "garden"))
    assert widest([house, garden, Rights("viewer")]) == Rights("approver", frozenset({"house", "garden"}))
    assert widest([house, EVERY_ANSWER]).answer_for("garden")
    assert widest([house, EVERYTHING]).answer_for("garden")
    assert widest([]) == NOTHING
