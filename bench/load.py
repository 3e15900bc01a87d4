"""The load generator, a process of its own: jobs come in as lines of JSON, what was measured goes out the same way."""

import asyncio
import sys
import time
import uuid
from urllib.parse import urlsplit

import httptools
import uvloop
from pydantic import BaseModel, ConfigDict

NEW_KEY = "{new-key}"
"""In a header: something new for each request."""

OWN = "{own}"
"""In the address or the body: what a caller alone has of the job's `own`."""

_PATIENCE_S = 60.0


class Job(BaseModel):
    """`callers` ask one after the other, each on its own connection, for `seconds` or until `calls` are done; the warm-up is not counted.

    `prelude` are bodies that each caller sends first; a header `mcp-session-id` of an answer is sent from then on. An answer counts
    when its status is 200 and `expect` is in it; those that have `notes` in them are `noted`.
    """

    model_config = ConfigDict(frozen=True)

    url: str
    body: str
    expect: str
    notes: str = ""
    callers: int = 1
    seconds: float = 1.0
    warm_up_s: float = 0.0
    calls: int | None = None
    headers: dict[str, str] = {}
    prelude: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    def of_caller(self, number: int) -> "Job":
        """As this caller makes it."""
        if not self.own:
            return self
        mine = self.own[number % len(self.own)]
        return self.model_copy(update={"url": self.url.replace(OWN, mine), "body": self.body.replace(OWN, mine)})


class Measured(BaseModel):
    """Times in milliseconds. `wrong` counts answers that do not count, with the first of them in `first_wrong`."""

    model_config = ConfigDict(frozen=True)

    calls: int
    seconds: float
    p50_ms: float
    p99_ms: float
    noted: int = 0
    wrong: int
    first_wrong: str

    @property
    def per_second(self) -> float:
        return self.calls / self.seconds


class Connection(asyncio.Protocol):
    """One kept connection with one request at a time."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._answered: asyncio.Future[tuple[int, bytes]] | None = None
        self.session: str | None = None

    def use(self, transport: asyncio.Transport) -> "Connection":
        self._transport = transport
        return self

    def ask(self, request: bytes) -> asyncio.Future[tuple[int, bytes]]:
        """The status and the body of the answer."""
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answered

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or ConnectionResetError("the server hung up"))

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"mcp-session-id":
            self.session = value.decode()

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        status, body = self._parser.get_status_code(), b"".join(self._body)
        self._body.clear()
        self._parser = httptools.HttpResponseParser(self)
        if self._answered is not None and not self._answered.done():
            self._answered.set_result((status, body))


class Counts:
    """What the callers of one job share."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.begin = time.perf_counter() + job.warm_up_s
        self.end = self.begin + job.seconds
        self.left = job.calls if job.calls is not None else sys.maxsize
        self.times: list[float] = []
        self.last = self.begin
        self.noted = 0
        self.wrong: list[str] = []

    def go_on(self) -> bool:
        self.left -= 1
        # The first call is made also when a busy machine has let all the time pass before it: nothing measured is no measurement.
        return self.left >= 0 and (self.job.calls is not None or not self.times or time.perf_counter() < self.end)

    def note(self, asked: float, status: int, body: bytes) -> None:
        now = time.perf_counter()
        if asked < self.begin:
            return
        self.last = now
        self.times.append(now - asked)
        self.noted += self.job.notes.encode() in body
        if status != 200 or self.job.expect.encode() not in body:
            self.wrong.append(f"{status} {body[:300].decode(errors='replace')}")

    def measured(self) -> Measured:
        times = sorted(self.times)
        return Measured(
            calls=len(times),
            seconds=max(self.last - self.begin, 1e-9),
            p50_ms=_at(times, 0.5),
            p99_ms=_at(times, 0.99),
            noted=self.noted,
            wrong=len(self.wrong),
            first_wrong=self.wrong[0] if self.wrong else "",
        )


def _at(times: list[float], share: float) -> float:
    return times[min(int(len(times) * share), len(times) - 1)] * 1000 if times else 0.0


async def _run(job: Job) -> Measured:
    address = urlsplit(job.url)
    loop, host, port = asyncio.get_running_loop(), address.hostname or "127.0.0.1", address.port or 80
    made = [await loop.create_connection(Connection, host, port) for _ in range(job.callers)]
    connections = [connection.use(transport) for transport, connection in made]
    try:
        requests = [await _prepared(connection, job.of_caller(number)) for number, connection in enumerate(connections)]
        counts = Counts(job)
        callers = [_call(connection, request, counts) for connection, request in zip(connections, requests, strict=True)]
        for error in filter(None, await asyncio.gather(*callers, return_exceptions=True)):
            raise error
        return counts.measured()
    finally:
        for connection in connections:
            connection.close()


async def _prepared(connection: Connection, job: Job) -> bytes:
    for body in job.prelude:
        await asyncio.wait_for(connection.ask(_request(job, body, connection.session)), _PATIENCE_S)
    return _request(job, job.body, connection.session)


async def _call(connection: Connection, request: bytes, counts: Counts) -> None:
    new = NEW_KEY.encode() in request
    while counts.go_on():
        sent = request.replace(NEW_KEY.encode(), uuid.uuid4().hex.encode(), 1) if new else request
        asked = time.perf_counter()
        status, body = await asyncio.wait_for(connection.ask(sent), _PATIENCE_S)
        counts.note(asked, status, body)


def _request(job: Job, body: str, session: str | None) -> bytes:
    address, content = urlsplit(job.url), body.encode()
    headers = {"Host": address.netloc, "Content-Type": "application/json", "Content-Length": str(len(content)), **job.headers}
    if session:
        headers["Mcp-Session-Id"] = session
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {address.path or '/'} HTTP/1.1\r\n{head}\r\n".encode() + content


def _main() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for line in sys.stdin:
            try:
                said = runner.run(_run(Job.model_validate_json(line))).model_dump_json()
            except (OSError, TimeoutError, httptools.HttpParserError) as error:
                said = Measured(
                    calls=0, seconds=1, p50_ms=0, p99_ms=0, wrong=1, first_wrong=f"{type(error).__name__}: {error}"
                ).model_dump_json()
            sys.stdout.write(said + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    _main()
