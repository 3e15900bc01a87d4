"""Environments of the peers and of other commits, made from the index on first use and kept until their requirements change."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from bench.service import ROOT

_PLACE = Path(sys.prefix) / "bench"
"""Inside our own environment, where neither git nor the checkers look and `make clean` removes it."""


def python_of(peer: str) -> Path:
    """The interpreter of the environment with what `bench/peers/<peer>.txt` pins. Raises CalledProcessError when it cannot be made."""
    requirements = ROOT / "bench/peers" / f"{peer}.txt"
    return made_environment(f"{peer}-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:8]}", requirements)


def made_environment(name: str, requirements: Path, *options: str) -> Path:
    """The interpreter of the environment of this name, which is made unless it is there. Raises CalledProcessError when it cannot be."""
    folder = _PLACE / name
    python, done = folder / "bin/python", folder / ".complete"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        uv = str(Path(sys.prefix) / "bin/uv")
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True)
        install = [uv, "pip", "install", "-q", "--compile-bytecode", "--python", str(python), *options, "-r", str(requirements)]
        subprocess.run(install, check=True)
        done.touch()
    return python
