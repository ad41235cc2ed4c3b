"""Services, tool files, and the definition that the catalog gets."""

import time
from pathlib import Path

import pytest

from agent_gate.config.decode import Reading
from agent_gate.config.files.variables import Variables
from agent_gate.config.services.definition import to_definition
from agent_gate.config.services.tools import load_tools_file
from agent_gate.core.declared import declared_by
from agent_gate.core.signature import compile_signer
from agent_gate.core.validate import compile_validator
from agent_gate.errors import InvalidArgs
from agent_gate.net.tls.certificates import ensure_certificate

ROOT = Path(__file__).parents[2]
SERVICE = "services: {api: {url: 'http://api.example', tools: t.yaml}}"


def tool_file(body: str) -> str:
    """A tool file with one tool; `body` stands below its name."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return f"tools:\n  do:\n{lines}"


@pytest.fixture
def one(load_text):
    """The service and the only tool of a file with `body`."""

    def one(body: str):
        service = load_text(SERVICE, t__yaml=tool_file(body)).settings.sources["services"]["api"]
        return service, service.tools[0]

    return one


@pytest.fixture
def tool_refused(refused):
    return lambda body: refused(SERVICE, t__yaml=tool_file(body))


def check(definition, **arguments):
    """Refuses arguments that do not fit; otherwise what they are."""
    compile_validator(definition, declared_by(definition))(arguments)
    return arguments


def test_the_packaged_home_assistant_file_defines_four_tools():
    reading = Reading(Variables({}))
    tools = load_tools_file(ROOT / "tools/homeassistant.yaml", "homeassistant", reading)
    assert [tool.name for tool in tools] == [
        "ha_get_state",
        "ha_get_states",
        "ha_call_service",
        "ha_fire_event",
    ]
    assert [tool.read_only for tool in tools] == [True, True, False, False]
    assert {tool.service_name for tool in tools} == {"homeassistant"}
    assert all(tool.description for tool in tools)
    assert all(arg.description for tool in tools for arg in tool.args.values())
    assert reading.warnings == []


def test_a_home_assistant_call_is_signed_as_its_template_says(load_text, env):
    loaded = load_text(
        "services: {ha: {url: 'http://ha', tools: t.yaml}}",
        t__yaml=(ROOT / "tools/homeassistant.yaml").read_text(),
    )
    service = loaded.settings.sources["services"]["ha"]
    definition = to_definition(service, service.tools[2])
    arguments = {"domain": "light", "service": "turn_on", "entity_id": "light.bedroom"}
    assert (
        compile_signer(definition.name, definition)(arguments)
        == "ha_call_service(light.turn_on, light.bedroom)"
    )


def test_a_definition_carries_everything_that_was_declared(one):
    service, tool = one("""
description: Send a mail
signature: "{to}"
args:
  to: {required: true, validate: "[a-z]+@[a-z.]+|root", description: Who}
  body: {text: true}
  password: {secret: true}
  count: {type: integer, default: 1}
  kind: {enum: [plain, html]}
  tags: {type: array, items: {type: string, validate: "[a-z]+"}}
  more: {type: object, properties: {x: {type: number, required: true}}}
additional_args: false
request: {method: POST, path: /mail}
timeout: 5
destructive: true
open_world: true
ask: "Send a mail to {to}?"
budget: 500
tags: [mail]
""")
    definition = to_definition(service, tool)
    assert definition.input_schema == {
        "type": "object",
        "properties": {
            "to": {"type": "string", "description": "Who", "pattern": "^(?:[a-z]+@[a-z.]+|root)$"},
            "body": {"type": "string"},
            "password": {"type": "string", "description": "(no * ? [ ] ( ) , or line breaks)"},
            "count": {"type": "integer", "default": 1},
            "kind": {"type": "string", "enum": ["plain", "html"]},
            "tags": {"type": "array", "items": {"type": "string", "pattern": "^(?:[a-z]+)$"}},
            "more": {
                "type": "object",
                "properties": {"x": {"type": "number"}},
                "required": ["x"],
                "additionalProperties": False,
            },
        },
        "required": ["to"],
        "additionalProperties": False,
    }
    assert (definition.template, definition.flat, definition.strict) == ("{to}", True, True)
    assert definition.declared == {"to", "body", "password", "count", "kind", "tags", "more"}
    assert (definition.text, definition.secret) == ({"body"}, {"password"})
    assert definition.patterns == {"to": "[a-z]+@[a-z.]+|root"}
    assert (definition.timeout, definition.budget, definition.tags) == (5.0, 500, ("mail",))
    traits = definition.traits
    assert (traits.destructive, traits.open_world, traits.read_only, traits.trusted) == (
        True,
        True,
        False,
        True,
    )


@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        ("request: {method: GET, path: /}", False),
        ("request: {method: DELETE, path: /}", False),
        ("request: {method: POST, path: /}", True),
        ("request: {method: PATCH, path: /}", True),
        ("request: {method: POST, path: /}\nadditional_args: false", False),
        ("request: {method: POST, path: /, body: {on: true}}", False),
    ],
)
def test_undeclared_arguments_are_taken_only_where_there_is_a_body(one, body, allowed):
    definition = to_definition(*one(body))
    if allowed:
        check(definition, brightness=128)
    else:
        with pytest.raises(InvalidArgs, match="Unknown argument: brightness"):
            check(definition, brightness=128)


def test_an_argument_that_no_template_names_is_a_warning_beside_a_body_template(load_text):
    body = """
args: {a: {}, b: {}, c: {type: array}, d: {}, e: {}, f: {}, lost: {}}
signature: "{a}"
ask: "Do it for {b}?"
request: {method: POST, path: "/{d}", query: {q: "{e}"}, headers: {X: "{f}"}, body: {deep: [{c: "{c}"}]}}
"""
    warnings = load_text(SERVICE, t__yaml=tool_file(body)).warnings
    assert [str(each) for each in warnings if "lost" in str(each)] == [
        "t.yaml:3:65: tools.do.args.lost: no template names it, so it is not sent"
    ]
    assert len(warnings) == 1


def test_an_argument_of_the_path_is_required_unless_it_has_a_default(one):
    definition = to_definition(
        *one("""
args: {room: {}, floor: {default: ground}}
request: {method: POST, path: "/{floor}/{room}"}
""")
    )
    assert definition.input_schema["required"] == ["room"]
    with pytest.raises(InvalidArgs, match="Missing required argument: room"):
        check(definition, floor="first")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('auth: {type: bearer, token: "hunter2\\n"}', "services.api.auth.token: has a line break"),
        ('auth: {type: header, header_name: X, token: "hunter2\\n"}', "services.api.auth.token: has a line"),
        (
            "auth: {type: header, header_name: X Y, token: hunter2}",
            "auth.header_name: is no name of a header",
        ),
        ("auth: {type: header, header_name: Host, token: hunter2}", "auth.header_name: is a header that the"),
        (
            "auth: {type: header, header_name: x-mine, token: hunter2}",
            "do: the header X-Mine is the credential",
        ),
        ("health: {path: /a b}", "services.api.health.path: has a character that no address can have"),
    ],
)
def test_what_cannot_stand_in_a_request_of_the_service_is_refused(refused, more, message):
    tool = tool_file("request: {method: GET, path: /, headers: {X-Mine: a}}")
    said = refused(f"services: {{api: {{url: 'http://api.example', tools: t.yaml, {more}}}}}", t__yaml=tool)
    assert message in said
    assert "hunter2" not in said


def test_a_get_tool_is_not_taken_for_read_only(one):
    assert not to_definition(*one("request: {method: GET, path: /}")).traits.read_only


@pytest.mark.parametrize("value", ["light.a\n", "light.a all-9", "all-", "LIGHT", "a b", ""])
def test_an_expression_must_match_the_whole_value(one, value):
    definition = to_definition(
        *one("""
args: {entity_id: {required: true, validate: "[a-z_]+(\\\\.[a-z0-9_]+)?|all-[0-9]+"}}
request: {method: GET, path: "/{entity_id}"}
""")
    )
    check(definition, entity_id="all-9")
    with pytest.raises(InvalidArgs):
        check(definition, entity_id=value)


def test_an_expression_runs_in_linear_time(one):
    definition = to_definition(*one("args: {a: {validate: '^(a+)+$'}}\nrequest: {method: GET, path: /}"))
    begin = time.process_time()
    with pytest.raises(InvalidArgs):
        check(definition, a="a" * 1_000_000 + "b")
    assert time.process_time() - begin < 1


@pytest.mark.parametrize("pattern", ["(?=a)b", "(?<!a)b", r"(a)\1", "[", "a)|(b", "(", "x" * 1025])
def test_an_expression_that_cannot_run_in_linear_time_is_refused_with_its_line(tool_refused, pattern):
    message = tool_refused(f"args:\n  a:\n    validate: '{pattern}'\nrequest: {{method: GET, path: /}}")
    assert message.startswith("t.yaml:5:19: tools.do.args.a.validate: ")


GET = "request: {method: GET, path: /}"


def test_a_template_without_quotes_is_told_to_have_some(tool_refused):
    said = tool_refused(f"signature: {{id}}\nargs: {{id: {{required: true}}}}\n{GET}")
    assert (
        "tools.do.signature: expected text, found a mapping; a text that begins with { needs quotes" in said
    )


@pytest.mark.parametrize(
    ("arg", "place"),
    [
        ("enum: [low, 2]", "enum[1]"),
        ("type: integer, enum: [1, '2']", "enum[1]"),
        ("validate: '[a-z]+', enum: [UP]", "enum[0]"),
        ("enum: []", "enum"),
        ("enum: ['a,b']", "enum"),
        ("default: 9", "default"),
        ("enum: [low, high], default: middle", "default"),
        ("validate: '[a-z]+', default: UP", "default"),
        ("default: 'a*'", "default"),
        ("type: array, items: {type: integer}, default: [1, two]", "default"),
        ("type: object, properties: {x: {type: integer, default: one}}", "properties.x.default"),
    ],
)
def test_a_value_that_no_call_could_have_is_refused_when_the_file_is_read(tool_refused, arg, place):
    assert tool_refused(f"args: {{a: {{{arg}}}}}\n{GET}").startswith("t.yaml:3:")
    assert f": tools.do.args.a.{place}: " in tool_refused(f"args: {{a: {{{arg}}}}}\n{GET}")


def test_values_that_fit_are_taken_also_those_of_free_text(one):
    definition = to_definition(
        *one(f"""
args:
  level: {{type: integer, enum: [1, 2], default: 2}}
  share: {{type: number, default: 1}}
  note: {{text: true, enum: ["a, b", "c?"], default: "c?"}}
  tags: {{type: array, items: {{enum: [x, y]}}, default: [x]}}
{GET}
""")
    )
    fitting = {"level": 1, "note": "a, b", "tags": ["y"]}
    assert check(definition, **fitting) == fitting


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"signature: '{{x}}'\n{GET}", "t.yaml:3:16: tools.do.signature: {x} names no declared argument"),
        (f"args: {{x: {{text: true}}}}\nsignature: '{{x}}'\n{GET}", "{x} is free text (text: true)"),
        ("args: {x: {text: true}}\nrequest: {method: GET, path: '/{x}'}", "path: {x} is free text"),
        (
            "args: {x: {text: true}}\nrequest: {method: GET, path: /, headers: {X: '{x}'}}",
            "headers.X: {x} is free text",
        ),
        (f"args: {{x: {{secret: true}}}}\nsignature: '{{x}}'\n{GET}", "do.signature: {x} is secret"),
        (f"args: {{x: {{type: array, items: {{text: true}}}}}}\n{GET}", "args.x: a part cannot be free text"),
        (
            f"args: {{x: {{type: object, properties: {{y: {{text: true}}}}}}}}\n{GET}",
            "args.x: a part cannot be free text",
        ),
        (f"args: {{x: {{type: array}}}}\nsignature: '{{x}}'\n{GET}", "{x} is of type array"),
        (f"signature: '{{x'\n{GET}", "a brace without its partner"),
        (f"signature: '{{}}'\n{GET}", "{} names no declared argument"),
        (f"ask: 'Do {{x}}?'\n{GET}", "tools.do.ask: {x} names no declared argument"),
        ("request: {method: GET, path: '/{x}'}", "tools.do.request.path: {x} names no declared argument"),
        ("args: {x: {type: object}}\nrequest: {method: GET, path: '/{x}'}", "{x} is of type object"),
        ("request: {method: GET, path: api}", 'tools.do.request.path: must start with "/"'),
        ("request: {method: GET, path: '/a b'}", "tools.do.request.path: has a character that no address"),
        ("request: {method: GET, path: '/ü'}", "tools.do.request.path: has a character that no address"),
        ("request: {method: GET, path: '/a#b'}", "tools.do.request.path: has a character that no address"),
        ("request: {method: GET, path: /, headers: {X Y: a}}", "headers.X Y: is no name of a header"),
        ("request: {method: GET, path: /, headers: {X-ü: a}}", "headers.X-ü: is no name of a header"),
        ("request: {method: GET, path: /, headers: {Host: a}}", "headers.Host: is a header that the gateway"),
        ('request: {method: GET, path: /, headers: {X: "a\\nb"}}', "headers.X: has a line break"),
        ("request: {method: GET, path: /, query: {q: '{x}'}}", "request.query.q: {x} names no"),
        ("request: {method: GET, path: /, headers: {X: '{x}'}}", "request.headers.X: {x} names no"),
        ("request: {method: POST, path: /, body: {a: ['{x}']}}", "request.body.a[0]: {x} names no"),
        (
            "additional_args: true\nrequest: {method: POST, path: /, body: {a: 1}}",
            "body: additional_args have no",
        ),
        ("request: {method: GET, path: /, body: {a: 1}}", "request.body: GET has no body; use query"),
        ("request: {method: GET, path: /, body_type: form}", "request.body_type: GET has no body; use query"),
        (
            "request: {method: PUT, path: /, body_type: text}",
            "request.body_type: text needs a `body` that is",
        ),
        (
            "request: {method: PUT, path: /, body_type: form, body: [1]}",
            "request.body_type: form needs a `body` that is a mapping",
        ),
        (
            "request: {method: PUT, path: /, headers: {content-type: multipart/form-data}}",
            "request.headers: the body is JSON whatever Content-Type says; body_type: form sends fields",
        ),
        (
            "request: {method: GET, path: /}\nresponse: {type: file, wrap: a}",
            "response.wrap: a file cannot be wrapped",
        ),
        ("request: {method: POST, path: /, body_exclude: [x]}", "body_exclude[0]: names no declared"),
        ("request: {method: FETCH, path: /}", "request.method: expected one of GET, POST"),
        ("request: {path: /}", 'tools.do.request: the key "method" is missing'),
        ("description: x", 'do: the key "request" is missing'),
        (f"record: behind\n{GET}", "tools.do.record: behind is only for tools with read_only: true"),
        (f"read_only: true\ndestructive: true\n{GET}", "cannot be read_only and destructive"),
        (f"args: {{x: {{typ: integer}}}}\n{GET}", 'args.x.typ: unknown key, did you mean "type"?'),
        (f"args: {{x: {{type: int}}}}\n{GET}", 'found int, did you mean "integer"?'),
        (f"args: {{x: {{type: integer, validate: a}}}}\n{GET}", "validate: only text can match"),
        (f"args: {{x: {{items: {{}}}}}}\n{GET}", "items: only for type: array"),
        (f"args: {{x: {{required: true, default: 1}}}}\n{GET}", "a required argument has no default"),
    ],
)
def test_a_wrong_tool_is_refused_with_its_place(tool_refused, body, message):
    found = tool_refused(body)
    assert message in found
    assert found.startswith("t.yaml:")


def test_a_body_template_takes_arguments_of_any_type(one):
    _, tool = one("""
args: {list: {type: array}, x: {text: true}}
request: {method: POST, path: /, body: {items: "{list}", note: "about {x}"}}
""")
    assert tool.request.body == {"items": "{list}", "note": "about {x}"}


def test_a_read_only_tool_may_run_ahead_of_its_record(one):
    assert to_definition(*one(f"read_only: true\nrecord: behind\n{GET}")).record == "behind"


def test_a_tool_name_outside_the_grammar_is_refused(refused):
    assert "a tool name has letters" in refused(SERVICE, t__yaml="tools: {'a b': {}}")


def test_tools_may_stand_in_the_configuration(load_text):
    text = "services: {api: {url: 'http://a', tools: {do: {request: {method: GET, path: /}}}}}"
    assert load_text(text).settings.sources["services"]["api"].tools[0].where == "config.yaml:1:43"


def test_tools_may_come_from_several_files(load_text):
    file = "tools: {%s: {request: {method: GET, path: /}}}"
    text = "services: {api: {url: 'http://a', tools: [x.yaml, y.yaml]}}"
    loaded = load_text(text, x__yaml=file % "x", y__yaml=file % "y")
    assert [tool.name for tool in loaded.settings.sources["services"]["api"].tools] == ["x", "y"]


def test_a_tool_file_that_does_not_exist_is_refused_where_it_is_named(refused):
    message = "config.yaml:1:52: services.api.tools: the tool file t.yaml does not exist"
    assert refused(SERVICE) == message


@pytest.mark.parametrize("text", ["", "tools:\n", "tools: {}\n"])
def test_an_empty_tool_file_is_a_warning(load_text, text):
    assert load_text(SERVICE, t__yaml=text).warnings == ("t.yaml: no tools are defined, so api offers none",)


def test_two_services_cannot_define_one_tool(refused):
    text = "services:\n  a: {url: 'http://a', tools: t.yaml}\n  b: {url: 'http://b', tools: u.yaml}\n"
    file = "tools:\n  do: {request: {method: GET, path: /}}\n"
    message = refused(text, t__yaml=file, u__yaml="\n" + file)
    assert message.startswith("u.yaml:3:3: tools.do: ")
    assert "t.yaml:2:3" in message


@pytest.mark.parametrize(
    ("service", "message"),
    [
        ("{}", "services.api.url: must start with http:// or https://"),
        ("{url: 'ftp://x'}", "services.api.url: must start with http:// or https://"),
        ("{url: 'http://u:pass@x'}", "services.api.url: has a user or password; write them under `auth`"),
        ("{url: 'http://x/a?b=1'}", "services.api.url: has a query or fragment"),
        ("{url: 'http://x/a b'}", "services.api.url: has a character that no address can have"),
        ("{url: 'http://mül.local'}", "services.api.url: has a host name with other characters"),
        ("{url: 'https://x', ca: no.pem}", "no.pem does not exist"),
        ("{url: 'https://x', ca: config.yaml}", "config.yaml as certificate authority"),
        ("{url: 'http://x', auth: {type: bearer}}", 'services.api.auth: type: bearer needs "token"'),
        ("{url: 'http://x', auth: {type: header, token: a}}", 'needs "header_name"'),
        ("{url: 'http://x', auth: {type: query, token: a}}", 'needs "query_param"'),
        ("{url: 'http://x', auth: {type: basic, password: a}}", 'type: basic needs "username"'),
        ("{url: 'http://x', auth: {type: digest}}", "services.api.auth.type: expected one of"),
        ("{url: 'http://x', errors: [{status: 404, message: 'no {id}'}]}", "{id} is not known"),
        ("{url: 'http://x', errors: [{status: 404}]}", 'errors[0]: the key "message" is missing'),
        ("{url: 'http://x', handler: python}", "services.api.handler_class: expected module:Class"),
        ("{url: 'http://x', handler_class: 'a:B'}", "handler_class: only for handler: python"),
    ],
)
def test_a_wrong_service_is_refused(refused, service, message):
    assert message in refused(f"services: {{api: {service}}}")


def test_a_renewed_authority_of_a_service_is_another_configuration(load_text, folder):
    def loaded(name):
        ensure_certificate(folder / name).cert.replace(folder / "ca.pem")
        return load_text("services: {api: {url: 'https://x', ca: ca.pem}}")

    first, second = loaded("one"), loaded("two")
    assert first.settings.sources["services"]["api"] != second.settings.sources["services"]["api"]
    assert folder / "ca.pem" in first.watched


def test_a_plugin_may_have_any_address_and_a_partial_credential(load_text):
    text = """
services:
  custom_mqtt:
    url: "mqtt://broker:1883"
    auth: {type: header, token: "${MQTT_TOKEN}"}
    handler: python
    handler_class: "my_plugin:MQTTService"
    tools: {publish: {args: {topic: {required: true}}}}
    options: {qos: 1}
"""
    service = load_text(text, {"MQTT_TOKEN": "m"}).settings.sources["services"]["custom_mqtt"]
    assert (service.handler_class, service.options) == ("my_plugin:MQTTService", {"qos": 1})
    assert service.tools[0].request is None


def test_only_a_configured_health_check_says_so(load_text):
    text = "services: {a: {url: 'http://a'}, b: {url: 'http://b', health: {path: /up}}}"
    services = load_text(text).settings.sources["services"]
    assert (services["a"].health.path, services["a"].health.configured) == ("/", False)
    assert (services["b"].health.path, services["b"].health.configured) == ("/up", True)


def test_a_tool_without_a_timeout_has_that_of_its_service(load_text):
    text = "services: {api: {url: 'http://a', timeout: 7, tools: {do: {request: {method: GET, path: /}}}}}"
    service = load_text(text).settings.sources["services"]["api"]
    assert to_definition(service, service.tools[0]).timeout == 7.0


def test_a_tool_file_has_only_tools(refused):
    assert refused(SERVICE, t__yaml="toolz: {}").startswith("t.yaml:1:1: toolz: unknown key")
