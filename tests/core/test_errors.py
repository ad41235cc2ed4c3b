import re

from agent_gate import errors
from agent_gate.errors import GatewayError, by_code, leaves


def test_the_tree_in_the_docstring_is_the_tree_in_the_code():
    drawn = dict(re.findall(r"(?:├──|└──|^    )\s*(\w+)\s+([A-Z_]+)\s", errors.__doc__, re.MULTILINE))
    assert drawn == {
        cls.__name__: cls.code
        for cls in leaves()
        if cls is not GatewayError and cls.__name__ != "HTTPServiceError"
    }


def test_every_code_leads_back_to_the_class_that_owns_it():
    for cls in leaves():
        assert issubclass(cls, by_code()[cls.code])


def test_every_leaf_has_an_outward_form_with_code_message_and_retryable():
    for cls in leaves():
        shown = cls("what to do").as_dict()
        assert shown == {"code": cls.code, "message": "what to do", "retryable": cls.retryable}
        assert 400 <= cls.status < 600
        assert 1 <= cls.exit <= 9
