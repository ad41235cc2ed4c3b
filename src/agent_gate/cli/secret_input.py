"""A secret from a person or a pipe: it is never an argument, which everybody on the machine could read."""

import sys

import click


def read_secret(what: str) -> str:
    """What is piped in, else what is typed at a prompt that shows nothing."""
    if not sys.stdin.isatty():
        return sys.stdin.read().strip("\r\n")
    return str(click.prompt(what, hide_input=True, err=True))
