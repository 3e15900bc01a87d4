"""The time limits of the database are those of the page for operators."""

import inspect
from pathlib import Path

from engine.store.connection.engines import ANSWER_MS, BUSY_TIMEOUT_MS, CONNECT_S
from engine.store.database import Database

_PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def test_the_page_has_the_limits_of_the_code() -> None:
    wait_s: float = inspect.signature(Database).parameters["pool_wait_s"].default
    said = (
        f"Time limits: connecting {CONNECT_S:g} s, waiting for a free connection {wait_s:g} s, "
        f"for a lock {BUSY_TIMEOUT_MS / 1000:g} s, for a statement {ANSWER_MS / 1000:g} s."
    )
    assert said in _PAGE.read_text("utf-8")
