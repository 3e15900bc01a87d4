"""A command line program of one subcommand, which does nothing that takes long."""

import json

import click


@click.group()
def main() -> None:
    """Says things."""


@main.command()
@click.option("--message", required=True, help="What to say.")
def say(message: str) -> None:
    """Says it again."""
    click.echo(json.dumps({"said": message}))
