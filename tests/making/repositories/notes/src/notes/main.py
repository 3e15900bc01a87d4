"""Counts and repeats words."""

from fastapi import FastAPI
from pydantic import BaseModel

from notes.words import count

app = FastAPI(title="Notes")


class Note(BaseModel):
    text: str


class Counted(BaseModel):
    words: int


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}


@app.post("/count")
async def count_words(note: Note) -> Counted:
    return Counted(words=count(note.text))


@app.post("/repeat")
async def repeat(note: Note, times: int = 2) -> list[str]:
    return [note.text] * times
