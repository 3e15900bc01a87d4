"""What a model writes, heard as it is written."""

from collections.abc import Sequence

from toolagent.contracts.chats import Chunk


class Heard:
    """By nobody: most roles wait for the whole of an answer."""

    def hear(self, text: str) -> None:
        """A piece more."""

    async def rest(self) -> Sequence[Chunk]:
        """What nobody was told so far. The model is done; who asks may tell it, and then says so."""
        return ()

    async def write(self) -> None:
        """Tell the rest now."""

    def was_told(self) -> None:
        """The rest was."""
