"""ComfyUI's own API at the address of a server: upload, prompt, history, view."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, JsonValue, ValidationError

from engine.runtimes.builtin.runcomfy.peer import Answer, Api, NoAnswer, Peer, ask, unreachable
from engine.runtimes.builtin.runcomfy.workflow import Prompt
from engine.runtimes.failures import CallFailed
from toolagent.contracts.calls import ErrorType

_OK, _BAD_REQUEST, _TOO_LARGE = 200, 400, 413
_PIECE = 1 << 20


class Uploaded(BaseModel):
    name: str
    subfolder: str = ""

    @property
    def path(self) -> str:
        """The name by which a node loads it."""
        return str(PurePosixPath(self.subfolder, self.name))


class Picture(BaseModel):
    """An output file of a node, as the history names it."""

    filename: str
    subfolder: str = ""
    type: str = "output"


class Queued(BaseModel):
    """`node_errors`: ComfyUI executes the valid outputs and leaves out those that need these nodes."""

    prompt_id: str
    node_errors: dict[str, JsonValue] = {}


class _Declared(BaseModel):
    """The inputs of a node class: `[type, {"default": …}]` by name. Third-party nodes may use other forms."""

    required: dict[str, JsonValue] = {}


class _Class(BaseModel):
    input: _Declared = _Declared()


class Status(BaseModel):
    status_str: str = ""
    completed: bool = False
    messages: list[JsonValue] = []


class Ended(BaseModel):
    """A prompt's entry in the history. It is written when the prompt has ended."""

    outputs: dict[str, dict[str, JsonValue]] = {}
    status: Status | None = None


class ComfyUnreachable(Exception):
    """No answer, or not one of ComfyUI: the server may be gone."""


M = TypeVar("M", bound=BaseModel)


class Comfy(Api):
    """The API has no keys: none is sent. Methods raise ComfyUnreachable unless they say otherwise."""

    def __init__(self, url: str, peer: Peer) -> None:
        super().__init__(url, peer.client())

    async def upload(self, name: str, content: bytes, subfolder: str) -> Uploaded:
        """Puts the file into ComfyUI's folder of inputs."""
        answer = await self._asked(
            "POST", "/upload/image", files={"image": (name, content)}, data={"overwrite": "true", "type": "input", "subfolder": subfolder}
        )
        if answer.status in {_BAD_REQUEST, _TOO_LARGE}:
            why = ": it is too large for this server" if answer.status == _TOO_LARGE else ""
            message = f"ComfyUI does not take the file {name!r}{why}."
            raise CallFailed(ErrorType.VALIDATION_ERROR, message, {"file": name, **answer.facts})
        return _read(Uploaded, answer, _body(answer))

    async def defaults(self, kind: str) -> Prompt:
        """The defaults of a node class's required inputs, as far as they can be read; none for an unknown class."""
        answer = await self._asked("GET", f"/object_info/{quote(kind, safe='')}")
        if not _is_json(answer):
            raise _strange(answer)
        try:
            # Third-party classes may declare anything, such as Infinity. A workflow with all inputs needs no defaults.
            found = _Class.model_validate(answer.body.get(kind, {}) if isinstance(answer.body, dict) else {})
        except ValidationError:
            return {}
        return {
            name: options["default"]
            for name, declared in found.input.required.items()
            for options in _list(declared)[1:2]
            if isinstance(options, dict) and "default" in options
        }

    async def queue(self, prompt: Prompt, client_id: str) -> Queued:
        """Raises CallFailed with the faults that ComfyUI finds, by node."""
        try:
            answer = await ask(self._http, "POST", f"{self.url}/prompt", json={"prompt": prompt, "client_id": client_id})
        except NoAnswer as error:
            failure = unreachable("ComfyUI", error)
            if error.was_sent:  # it may run: another try would run it twice
                failure.error_type = ErrorType.EXECUTION_ERROR
            raise failure from error
        if answer.status == _BAD_REQUEST:
            raise _invalid(answer)
        return _read(Queued, answer, _body_of_ours(answer))

    async def ended(self, prompt_id: str) -> Ended | None:
        """None while the prompt has not ended."""
        answer = await self._asked("GET", f"/history/{prompt_id}")
        body = _body_of_ours(answer)
        found = body.get(prompt_id) if isinstance(body, dict) else None
        return _read(Ended, answer, found) if found else None

    async def is_queued(self, prompt_id: str) -> bool:
        """Whether the prompt waits or runs. The answer holds the full prompts of other clients too."""
        answer = await self._asked("GET", "/queue")
        body = _body(answer)
        if not isinstance(body, dict):
            raise _strange(answer)
        entries = [entry for name in ("queue_running", "queue_pending") for entry in _list(body.get(name))]
        return any(prompt_id in _list(entry) for entry in entries)

    async def fetch(self, picture: Picture, into: Path, max_bytes: int) -> None:
        """Raises CallFailed if the file is larger than `max_bytes`."""
        size = 0
        try:
            async with self._http.stream("GET", f"{self.url}/view", params=picture.model_dump()) as response:
                if response.status_code != _OK:
                    raise ComfyUnreachable(f"/view answered {response.status_code} for {picture.filename!r}")
                with await asyncio.to_thread(into.open, "wb") as file:
                    async for piece in response.aiter_bytes(_PIECE):
                        size += len(piece)
                        if size > max_bytes:
                            message = f"{picture.filename!r} is larger than {max_bytes} bytes, the most that a file may have here."
                            raise CallFailed(ErrorType.OUTPUT_VALIDATION_ERROR, message, {"outcome": "executed"})
                        await asyncio.to_thread(file.write, piece)
        except httpx.HTTPError as error:
            raise ComfyUnreachable(str(error) or type(error).__name__) from error

    async def interrupt(self, prompt_id: str) -> None:
        """Whether it waits or runs. A ComfyUI that is older than the parameter ends what runs."""
        await self._asked("POST", "/queue", json={"delete": [prompt_id]})
        await self._asked("POST", "/interrupt", json={"prompt_id": prompt_id})

    async def _asked(self, method: str, path: str, **content: object) -> Answer:
        try:
            return await ask(self._http, method, f"{self.url}{path}", **content)
        except NoAnswer as error:
            raise ComfyUnreachable(str(error)) from error


def _read(model: type[M], answer: Answer, value: JsonValue) -> M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise _strange(answer) from error


def _is_json(answer: Answer) -> bool:
    """Whether ComfyUI says that it is, readable or not. A proxy before a server that is gone answers with a page."""
    return answer.status == _OK and answer.headers.get("content-type", "").startswith("application/json")


def _body_of_ours(answer: Answer) -> JsonValue:
    """The body of an answer about our prompt alone. Raises CallFailed if it is unreadable JSON: asking again would not help."""
    if _is_json(answer) and answer.body is None:
        message = "ComfyUI's answer cannot be read: a node put out NaN or Infinity, which JSON has not, or more than 8 MiB."
        raise CallFailed(ErrorType.OUTPUT_VALIDATION_ERROR, message, {"answer": answer.text}, "unknown")
    return _body(answer)


def _body(answer: Answer) -> JsonValue:
    if answer.status != _OK or answer.body is None:
        raise _strange(answer)
    return answer.body


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _strange(answer: Answer) -> ComfyUnreachable:
    return ComfyUnreachable(f"it answered {answer.status} {answer.text[:200]!r}")


def _invalid(answer: Answer) -> CallFailed:
    """The failure quotes ComfyUI's own messages."""
    body = answer.body if isinstance(answer.body, Mapping) else {}
    error, nodes = body.get("error"), body.get("node_errors")
    said = error.get("message") if isinstance(error, Mapping) else error
    details = error.get("details") if isinstance(error, Mapping) else None
    wrong = [str(said or answer.text), *([str(details)] if details else []), *_of_nodes(nodes)]
    return CallFailed(
        ErrorType.VALIDATION_ERROR, f"ComfyUI refuses the workflow: {'; '.join(wrong)}", {"error": error, "node_errors": nodes}
    )


def _of_nodes(nodes: JsonValue) -> Iterator[str]:
    for node_id, told in nodes.items() if isinstance(nodes, Mapping) else ():
        errors = told.get("errors") if isinstance(told, Mapping) else None
        for error in errors if isinstance(errors, list) else ():
            if isinstance(error, Mapping):
                yield f"node {node_id}: {error.get('message')} ({error.get('details')})"
