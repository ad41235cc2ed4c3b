"""`Traits`: what a tool does to the world. A field with its `Trait` is all that a trait needs to be known everywhere."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeVar, get_args

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """How others speak of a trait: MCP's hint, and what the key of that name means for a tool declared in YAML, for
    the tools of a server, and in a rule. A `cautious` one makes us more careful, so that even a server that nobody
    trusts is believed to have it."""

    hint: str
    cautious: bool
    tool: str
    server: str
    rule: str


@dataclass(frozen=True, slots=True)
class Traits:
    """What a tool does to the world. `trusted` says whether an allow rule may rely on the benign ones."""

    read_only: Annotated[
        bool,
        Trait(
            hint="readOnlyHint",
            cautious=False,
            tool="It changes nothing.",
            server="They change nothing.",
            rule="Only tools that are, or are not, read-only.",
        ),
    ] = False
    destructive: Annotated[
        bool,
        Trait(
            hint="destructiveHint",
            cautious=True,
            tool="It may destroy something.",
            server="They may destroy something.",
            rule="Only tools that are, or are not, destructive.",
        ),
    ] = False
    idempotent: Annotated[
        bool,
        Trait(
            hint="idempotentHint",
            cautious=False,
            tool="Doing it twice is like doing it once, so it may be tried again.",
            server="Doing it twice is like doing it once.",
            rule="Only tools that are, or are not, idempotent.",
        ),
    ] = False
    open_world: Annotated[
        bool,
        Trait(
            hint="openWorldHint",
            cautious=True,
            tool="It reaches beyond the service, such as sending mail.",
            server="They reach beyond the server.",
            rule="Only tools that do, or do not, reach beyond their source.",
        ),
    ] = False
    trusted: bool = False


NO_TRAITS = Traits()
TRAITS: dict[str, Trait] = {
    found.name: note for found in fields(Traits) for note in get_args(found.type) if isinstance(note, Trait)
}


def trait_fields(kind: Any, default: Any, meaning: Callable[[Trait], str]) -> Callable[[type[T]], type[T]]:
    """Gives a settings class a field for each trait, below the decorator that makes it a dataclass."""

    def add(cls: type[T]) -> type[T]:
        made = {name: Annotated[kind, meaning(trait)] for name, trait in TRAITS.items()}
        cls.__annotations__ = {**cls.__annotations__, **made}
        for name in made:
            setattr(cls, name, default)
        return cls

    return add
