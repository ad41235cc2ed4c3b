"""How options take a number of seconds."""

import math
from typing import Any

import click

LONGEST = 366 * 24 * 3600.0


class Seconds(click.FloatRange):
    """A span of time that ends: no `nan`, and nothing that no clock reaches."""

    def __init__(self, *, open_: bool = True) -> None:
        super().__init__(min=0.0, min_open=open_, max=LONGEST)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail("nan is no number of seconds", param, ctx)
        return seconds
