"""Descriptions as JSDoc comments that no description can end, and that carry no directive to a compiler."""

import re

LONGEST = 4_000
# Line separators and control characters other than line feed and tab; lone surrogates cannot be encoded.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
TAG = re.compile(r"(^|[\s*/{])@", re.MULTILINE)


def clean(text: str) -> str:
    """`text` without what would end a comment, hide in it, or be read by a tool as an instruction."""
    shortened = text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
    visible = INVISIBLE.sub(" ", shortened.replace("\r\n", "\n").replace("\r", "\n"))
    return TAG.sub(r"\1\\@", visible).replace("*/", "*\\/").replace("/*", "/\\*").replace("//#", "/ /#")


def doc(text: object, indent: str = "") -> str:
    """A `/** … */` block with its line break, or nothing where there is nothing to say."""
    if not isinstance(text, str) or not text.strip():
        return ""
    lines = [line.rstrip() for line in clean(text.strip()).split("\n")]
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"{indent}/**\n{body}{indent} */\n"
