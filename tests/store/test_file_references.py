"""Which files a call or a version holds."""

import sqlite3
from pathlib import Path

import pytest

from engine.store.database import migrate
from engine.store.file_references import named_files

INSERT_CALL = """
INSERT INTO calls (call_id, tool_id, version, fingerprint, workflow_id, run_id, params, caller, created_at, result)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
ONE, OTHER = "file_" + "1" * 32, "file_" + "2" * 32


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        ((), ()),
        ((None, "{}"), ()),
        ((f'{{"a": "{ONE}"}}', f'["{OTHER}", "{ONE}"]'), (ONE, OTHER)),
        ((f'"see /files/{ONE}, please"',), (ONE,)),
        ((f'"{ONE}0"', f'"my{ONE}"', '"file_xyz"'), ()),
    ],
)
def test_file_ids_are_found_wherever_they_stand(texts: tuple[str | None, ...], named: tuple[str, ...]) -> None:
    assert named_files(*texts) == named


def test_files_of_earlier_calls_are_held_after_the_migration(tmp_path: Path) -> None:
    url, lock = f"sqlite+aiosqlite:///{tmp_path / 'old.db'}", tmp_path / "lock"
    migrate(url, lock, "0001")
    with sqlite3.connect(tmp_path / "old.db") as old:
        for file_id in (ONE, OTHER):
            row = (file_id, "a.txt", "text/plain", 1, "0" * 64, "2026-01-01")
            old.execute("INSERT INTO files (file_id, name, media_type, size, sha256, created_at) VALUES (?, ?, ?, ?, ?, ?)", row)
        for call_id, params, result in (
            *((f"call-{number:04}", "{}", None) for number in range(1200)),
            ("call-a", f'{{"file": "{ONE}"}}', None),
            ("call-z", "{}", f'{{"result": ["{OTHER}", "file_{"9" * 32}"]}}'),
        ):
            row = (call_id, "t", "1.0.0", "f", "w", "r", params, "{}", "2026-01-01", result)
            old.execute(INSERT_CALL, row)
    old.close()
    migrate(url, lock)
    with sqlite3.connect(tmp_path / "old.db") as new:
        held = set(new.execute("SELECT file_id, holder FROM file_references"))
    new.close()
    assert held == {(ONE, "call:call-a"), (OTHER, "call:call-z")}
