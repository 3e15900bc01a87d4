"""What a command line program costs: from a repository to the first call, beside uv's own installation; and a call, beside a script's."""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import JsonValue
from uv import find_uv_bin

from bench.making import Workshop, repository_of
from bench.processes import bare_environment
from bench.results import Single
from bench.service import SCRIPT, SCRIPT_ACTING
from engine.disk.removal import remove

_NAME, _PROGRAM = "bench_program", "bench-program"
_MESSAGE = "hello"
_PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "bench-program"
version = "1.0.0"
description = "A small program, made a tool by the measurements."
requires-python = ">=3.11"
dependencies = ["click"]

[project.scripts]
bench-program = "bench_program:main"

[tool.hatch.build.targets.wheel]
include = ["bench_program.py"]
"""
_MODULE = """\
import json

import click


@click.group()
def main() -> None:
    '''Says things.'''


@main.command()
@click.option("--message", required=True, help="What to say.")
def say(message: str) -> None:
    '''Says it again.'''
    click.echo(json.dumps({"said": message}))
"""


def measure_programs(shop: Workshop, times: int, calls: int) -> list[Single]:
    """Medians in milliseconds, in turns.

    `program.anew`: by a task that is followed to its end, with nothing installed before, its first call included; `program.hand`:
    `uv tool install` and one `--help`, with a cache of its own that is empty. Then `calls` calls of the program and of scripts.
    """
    spec: dict[str, JsonValue] = {
        "type": "github_deploy",
        "repo_url": repository_of(_source(shop.folder / "files"), shop.folder / "program"),
        "tool_name": _NAME,
    }
    took: dict[str, list[float]] = {"anew": [], "hand": []}
    # The first finds nothing imported and nothing started.
    shop.made(spec)
    for number in range(times):
        remove(shop.service.state / "environments")
        took["hand"].append(_by_hand(shop.folder / f"hand-{number}"))
        took["anew"].append(_from_nothing(shop, spec))
    labels = {"anew": "through us, its first call included", "hand": "uv tool install and --help"}
    made = [
        Single(name=f"program.{way}", label=f"program from nothing, {labels[way]}", value=statistics.median(seconds) * 1000, unit="ms")
        for way, seconds in took.items()
    ]
    turns = list[Single]()
    shop.made(spec, then=lambda: turns.extend(asyncio.run(_calls(shop, calls))))
    return [*made, *turns]


def _from_nothing(shop: Workshop, spec: Mapping[str, JsonValue]) -> float:
    """Seconds until its first call is answered."""
    ended: list[float] = []
    began = time.perf_counter()
    shop.made(spec, then=lambda: (_called(shop), ended.append(time.perf_counter())))
    return ended[0] - began


async def _calls(shop: Workshop, calls: int) -> list[Single]:
    ways: Mapping[str, Callable[[], object]] = {
        "program.call": lambda: _called(shop),
        "program.script": lambda: shop.service.call(SCRIPT, message=_MESSAGE),
        "program.acting": lambda: shop.service.call(SCRIPT_ACTING, message=_MESSAGE),
    }
    labels = {"program.call": "a program", "program.script": "a script", "program.acting": "a script with side effects"}
    took: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(calls + 1):
        for way, once in ways.items():
            began = time.perf_counter()
            await asyncio.to_thread(once)
            if number:
                took[way].append(time.perf_counter() - began)
    return [Single(name=way, label=f"warm call of {labels[way]}", value=statistics.median(took[way]) * 1000, unit="ms") for way in ways]


def _called(shop: Workshop) -> None:
    """Raises ValueError for another answer than the program's."""
    answer = shop.service.call(_NAME, message=_MESSAGE)
    if not isinstance(answer, dict) or answer.get("output") != {"said": _MESSAGE}:
        raise ValueError(f"the program has answered {answer}")


def _source(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(_PROJECT, "utf-8")
    (folder / "bench_program.py").write_text(_MODULE, "utf-8")
    return folder


def _by_hand(folder: Path) -> float:
    """`uv tool install` of the same folder, without a cache, and one `--help`."""
    source = _source(folder / "source")
    environment = bare_environment() | {
        "UV_CACHE_DIR": str(folder / "cache"),
        "UV_TOOL_DIR": str(folder / "tools"),
        "UV_TOOL_BIN_DIR": str(folder / "bin"),
    }
    install = [find_uv_bin(), "tool", "install", "--python", sys.executable, str(source)]
    began = time.perf_counter()
    for command in (install, [str(folder / "bin" / _PROGRAM), "--help"]):
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return time.perf_counter() - began
