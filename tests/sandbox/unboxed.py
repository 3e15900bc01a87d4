"""A program without a sandbox: shows what an attempt achieves without protection."""

import asyncio
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.sandbox.abuse import Seen

__all__ = ["Trial", "unboxed"]

_ENDLESS = '\nVERDICT ["out", "it goes on and on"]\n'


@dataclass(frozen=True, slots=True)
class Trial:
    """The program of an attempt. It may read `own` and write `data`."""

    name: str
    argv: Sequence[str]
    data: Path
    own: tuple[Path, ...]
    wall_s: float
    has_way: bool


async def unboxed(trial: Trial) -> Seen:
    """Runs with everything inherited, without clean-up."""
    return await asyncio.to_thread(_ran, trial)


def _ran(trial: Trial) -> Seen:
    began = time.monotonic()
    files = [trial.data.with_name(f"{trial.name}.{stream}") for stream in ("out", "err")]
    with files[0].open("wb") as out, files[1].open("wb") as err:
        process = subprocess.Popen(trial.argv, cwd=trial.data, stdin=subprocess.DEVNULL, stdout=out, stderr=err, close_fds=False)
        try:
            process.wait(trial.wall_s)
            is_endless = False
        except subprocess.TimeoutExpired:
            is_endless = True
            process.kill()
            process.wait()
    said, errors = (file.read_text(errors="replace") for file in files)
    return Seen(process.returncode, said + (_ENDLESS if is_endless else ""), errors, None, time.monotonic() - began)
