"""A small service that is deployed by the measurements, through us and by hand."""

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI(title="Words")


class Text(BaseModel):
    text: str


class Count(BaseModel):
    words: int


@app.post("/count", operation_id="count")
def count(given: Text) -> Count:
    """Count the words of a text."""
    return Count(words=len(given.text.split()))


@app.get("/double/{number}", operation_id="double")
def double(number: int) -> Count:
    """Twice as many words."""
    return Count(words=2 * number)
