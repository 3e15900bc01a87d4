"""The prompts of the roles: named files, identified by their text."""

import hashlib
from dataclasses import dataclass
from pathlib import Path


class PromptMissing(ValueError):
    """The prompt is missing or empty; the message names the file."""


@dataclass(frozen=True, slots=True)
class Prompt:
    name: str
    text: str

    @property
    def label(self) -> str:
        """`name@version`, for the evidence. The version are 12 hex digits of the SHA-256 of the text."""
        return f"{self.name}@{hashlib.sha256(self.text.encode()).hexdigest()[:12]}"


class Prompts:
    """The `*.md` files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> Prompt:
        """Blocks. Strips white space around the text. Raises PromptMissing."""
        path = self._folder / f"{name}.md"
        try:
            text = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise PromptMissing(f"The prompt {name!r} cannot be read from {path}: {error}.") from error
        if not text:
            raise PromptMissing(f"The prompt {name!r} is empty: write it to {path}.")
        return Prompt(name, f"{text}\n")
