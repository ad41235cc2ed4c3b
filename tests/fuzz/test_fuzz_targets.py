"""Each target holds on its corpus and on what grows out of it: the same inputs here, new ones by `make fuzz`."""

import os

import pytest
from tests.fuzz.fuzzing import Target, repeat, search, seeds, targets

MINUTES = float(os.environ.get("AGENT_GATE_FUZZ", "0"))
INPUTS = 300
ONLY = os.environ.get("AGENT_GATE_FUZZ_TARGET", "")


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
@pytest.mark.timeout(max(120, MINUTES * 60 + 300))
def test_no_input_breaks_the_target(target: Target) -> None:
    if ONLY and target.name != ONLY:
        pytest.skip(f"only {ONLY} is asked for")
    tried = search(target, MINUTES * 60) if MINUTES else repeat(target, INPUTS)
    print(f"{target.name}: {tried} inputs, {len(seeds(target))} of them in the corpus")
    assert tried >= len(seeds(target))


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_every_target_begins_with_seeds(target: Target) -> None:
    assert seeds(target)
