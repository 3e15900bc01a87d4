"""The prompts of the roles: files with a name, known by what they say."""

import hashlib
from dataclasses import dataclass
from pathlib import Path


class PromptMissing(ValueError):
    """There is no such prompt, or nothing in it; the message names the file."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """`version` are the first 12 hex digits of the SHA-256 of its text."""

    name: str
    text: str

    @property
    def version(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        """`name@version`: what evidence keeps."""
        return f"{self.name}@{self.version}"


class Prompts:
    """The `*.md` of a folder. A file that is changed holds from the next time it is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> Prompt:
        """Blocks. Line ends do not count. Raises PromptMissing."""
        path = self._folder / f"{name}.md"
        try:
            text = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise PromptMissing(f"The prompt {name!r} cannot be read from {path}: {error}.") from error
        if not text:
            raise PromptMissing(f"The prompt {name!r} is empty: write it to {path}.")
        return Prompt(name, f"{text}\n")
