"""`python -m tests.im.program URL FOLDER [hold]`: a client whose chats keep their answers in a file each."""

import asyncio
import sys
from pathlib import Path

from engine.im.client import ImClient
from engine.im.connection import Line


class KeptChats:
    """Implements `Answering`: a line in `asked` for each question, and an answer file for each id."""

    def __init__(self, folder: Path, *, hold: bool) -> None:
        self._folder, self._hold = folder, hold

    async def answer(self, chat_id: str, message_id: str, text: str) -> str:  # noqa: ARG002 - what is answered here has no memory
        with (self._folder / "asked").open("a", encoding="utf-8") as asked:
            asked.write(f"{chat_id} {text}\n")
        if self._hold:
            await asyncio.Event().wait()
        with (self._folder / "answered").open("a", encoding="utf-8") as answered:
            answered.write(f"{chat_id} {text}\n")
        return f"{chat_id}: {text}"


if __name__ == "__main__":
    url, place, *more = sys.argv[1:]
    chats = KeptChats(Path(place), hold=bool(more))
    asyncio.run(ImClient(Line(url, longest_pause_s=0.1), Path(place) / "im", chats).run())
