"""The page about settings says what the settings are."""

from pathlib import Path

from toolagent.contracts.calls import ErrorType
from workers.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"


def test_every_setting_is_described_with_its_words() -> None:
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    missing = [
        name
        for name, field in Settings.model_fields.items()
        if f"`TOOL_AGENT_{name.upper()}`" not in page or str(field.description) not in page
    ]
    assert missing == []


def test_every_error_type_is_described() -> None:
    page = (DOCS / "calls.md").read_text(encoding="utf-8")
    assert [kind.value for kind in ErrorType if f"| `{kind.value}` |" not in page] == []


def test_every_source_type_is_described() -> None:
    page = (DOCS / "tools.md").read_text(encoding="utf-8")
    assert [kind for kind in ("local", "docker", "remote", "script", "builtin", "mcp") if f"| `{kind}` |" not in page] == []
