"""Contracts import neither Temporal, nor HTTP, nor a command line or a database."""

import subprocess
import sys

import pytest

HEAVY = ("temporalio", "httpx", "typer", "sqlalchemy", "fastapi")
SCRIPT = "import importlib, json, sys; importlib.import_module(sys.argv[1]); print(*{m.partition('.')[0] for m in sys.modules})"


def _loaded(module: str) -> set[str]:
    """The top-level packages in a fresh interpreter after importing one module."""
    ran = subprocess.run([sys.executable, "-c", SCRIPT, module], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.split())


@pytest.mark.parametrize("module", ["toolagent.contracts.calls", "toolagent_service.contracts.steps", "toolagent.core"])
def test_a_contract_is_imported_without_anything_heavy(module: str) -> None:
    loaded = _loaded(module)
    assert "toolagent" in loaded
    assert loaded.intersection(HEAVY) == set()


def test_something_heavy_would_be_seen() -> None:
    assert "httpx" in _loaded("httpx")
