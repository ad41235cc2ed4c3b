"""What is done with results that may be large, each as one plain function of its input.

A job is data, so that a process of its own can do it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import msgspec

from agent_gate.core.call import Result
from agent_gate.core.tool import Json
from agent_gate.results.budget import Fits
from agent_gate.results.envelope import Artifact, ResultEnvelope, summarise
from agent_gate.results.handles import substitute
from agent_gate.results.reading import Stored
from agent_gate.results.views import ResultView, view

T_co = TypeVar("T_co", covariant=True)


class Doable(Protocol[T_co]):
    """What can be done with results: it gives a `T`, whose form in JSON is `gives`."""

    gives: ClassVar[Any]

    def run(self, results: Sequence[Stored], fits: Fits) -> T_co: ...


class ViewJob(msgspec.Struct, frozen=True, tag="view"):
    """Look at a part of one result."""

    gives: ClassVar[Any] = ResultView
    selector: Mapping[str, Any]

    def run(self, results: Sequence[Stored], fits: Fits) -> ResultView:
        return view(results[0].read(), self.selector, fits)


class SummaryJob(msgspec.Struct, frozen=True, tag="summary"):
    """Say in few words what is in one result."""

    gives: ClassVar[Any] = ResultEnvelope
    artifact: Artifact
    kind: Literal["json", "mcp"]
    is_error: bool

    def run(self, results: Sequence[Stored], fits: Fits) -> ResultEnvelope:
        return summarise(Result(results[0].body, self.kind, self.is_error), self.artifact, fits)


class FillJob(msgspec.Struct, frozen=True, tag="fill"):
    """Put results where the arguments of a call mention their handles; the results come in the order of `handles`."""

    gives: ClassVar[Any] = dict[str, Any]
    arguments: Mapping[str, Json]
    schema: Mapping[str, Any]
    handles: tuple[str, ...]

    def run(self, results: Sequence[Stored], fits: Fits) -> dict[str, Json]:  # noqa: ARG002
        readings = {handle: stored.read() for handle, stored in zip(self.handles, results, strict=True)}
        return substitute(self.arguments, dict(self.schema), readings)


ReadingJob = ViewJob | SummaryJob | FillJob
