"""The functions of a librarian's model."""

from typing import Annotated

from pydantic import Field

from activities.agent_tool import AgentTool, AgentToolRefused, Arguments, Used

__all__ = ["LIBRARY_TOOLS", "Shelves"]

Shelves = dict[str, str]


class LookUp(Arguments):
    title: Annotated[str, Field(description="Of a book.")]


class Answer(Arguments):
    place: str


async def look_up(arguments: LookUp, shelves: Shelves) -> Used:
    if arguments.title not in shelves:
        raise AgentToolRefused(f"There is no book {arguments.title!r}.")
    return Used({"shelf": shelves[arguments.title]})


async def answer(arguments: Answer, _shelves: Shelves) -> Used:
    return Used({"answered": True}, product=arguments.place)


LIBRARY_TOOLS = (
    AgentTool("look_up", "Say on which shelf a book is.", LookUp, look_up),
    AgentTool("answer", "Tell the reader where to go.", Answer, answer),
)
