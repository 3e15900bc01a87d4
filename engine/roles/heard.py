"""Listeners to the text of a model while it is written."""

from collections.abc import Sequence

from toolagent.contracts.chats import Chunk


class Heard:
    """Ignores the text: most roles wait for the whole answer."""

    def hear(self, text: str) -> None:
        """Takes a piece of text."""

    async def rest(self) -> Sequence[Chunk]:
        """The text that was not written yet, after the model is done. A caller that writes it calls `was_told`."""
        return ()

    async def write(self) -> None:
        """Writes the rest."""

    def was_told(self) -> None:
        """The caller has written the rest."""
