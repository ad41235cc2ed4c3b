import math
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gate.observe.metrics import BUCKETS, Histogram
from agent_gate.observe.percentiles import percentile, summed


def counted(*seconds):
    histogram = Histogram("h", "")
    for value in seconds:
        histogram.observe(value)
    return summed(histogram)


@given(st.lists(st.floats(0.0001, 50), min_size=1, max_size=60), st.floats(0.01, 0.99))
def test_a_percentile_lies_in_the_bucket_of_the_value_it_stands_for(seconds, part):
    found = percentile(counted(*seconds), part)
    true = sorted(seconds)[math.ceil(part * len(seconds)) - 1]
    bucket = bisect_left(BUCKETS, true)
    low = BUCKETS[bucket - 1] if bucket else 0.0
    assert low <= found <= BUCKETS[bucket] + 1e-9


def test_a_percentile_of_nothing_is_nothing():
    assert percentile(counted(), 0.5) is None


@pytest.mark.parametrize(("part", "low", "high"), [(0.5, 0.001, 0.0025), (0.95, 0.5, 1.0)])
def test_a_percentile_is_interpolated_within_its_bucket(part, low, high):
    assert low <= percentile(counted(*[0.002] * 90, *[0.7] * 10), part) <= high
