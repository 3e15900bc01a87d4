"""One question to a model, as an activity: the same request each time, and the whole of the stream that answers it."""

import re
from pathlib import Path

import httpx
from temporalio import activity

from bench.peers.echo import Body

HEADERS = {"x-api-key": "any", "anthropic-version": "2023-06-01"}

_TEXT = re.compile(r'"text_delta", "text": "([^"]*)"')


class Model:
    """`question` is a file with the body of the request."""

    def __init__(self, url: str, question: Path) -> None:
        self._url, self._question = url, question.read_bytes()
        limits = httpx.Limits(max_connections=100)
        self._http = httpx.AsyncClient(limits=limits, timeout=30, trust_env=False, headers={"content-type": "application/json", **HEADERS})

    @activity.defn
    async def ask_model(self, _body: Body) -> Body:
        answer = await self._http.post(self._url, content=self._question)
        answer.raise_for_status()
        return {"message": "".join(_TEXT.findall(answer.text))}
