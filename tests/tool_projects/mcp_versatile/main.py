"""An MCP server that behaves as its caller asks (`mode`), or from the start on as BEHAVIOUR says.

Notes what happens in its HOME.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

HOME = Path(os.environ["HOME"])  # noqa: TID251 - a tool has no settings of ours
BEHAVIOUR = os.environ.get("BEHAVIOUR", "")  # noqa: TID251
LOCK = threading.Lock()
ASKED = threading.Event()
ANSWERS = []


def note(name: str, text: str = "") -> None:
    with LOCK, (HOME / name).open("a") as file:
        file.write(text + "\n")


def say(message: dict) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}))


def write(text: str) -> None:
    with LOCK:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def result(asked: dict, value: object) -> None:
    say({"id": asked["id"], "result": value})


def text(asked: dict, said: str, **more: object) -> None:
    result(asked, {"content": [{"type": "text", "text": said}], **more})


def call(asked: dict) -> None:  # noqa: C901 - one arm a behaviour
    params = asked["params"].get("arguments", {})
    meta = asked["params"].get("_meta", {})
    match params.get("mode"):
        case None:
            text(asked, json.dumps(params), structuredContent={"echo": params, "pid": os.getpid()})
        case "text":
            text(asked, "[1, 2]")
        case "image":
            blocks = [
                {"type": "text", "text": "one"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "text", "text": "two"},
            ]
            result(asked, {"content": blocks})
        case "size":
            text(asked, "", structuredContent={"size": len(params["pad"])})
        case "meta":
            text(asked, "", structuredContent=meta)
        case "environment":
            text(asked, "", structuredContent=dict(os.environ))  # noqa: TID251
        case "fail":
            text(asked, "as you asked", isError=True)
        case "refuse":
            say({"id": asked["id"], "error": {"code": -32602, "message": "not like this"}})
        case "garble":
            result(asked, {"content": 5})
        case "hang":
            note("hanging", str(asked["id"]))
        case "die":
            note("calls")
            sys.stderr.write("my last words\n")
            os._exit(3)
        case "wait":
            time.sleep(params["seconds"])
            text(asked, "waited")
        case "large":
            text(asked, "x" * params["bytes"])
        case "deep":
            deep = "[" * 5000 + "]" * 5000
            write(f'{{"jsonrpc": "2.0", "id": {asked["id"]}, "result": {{"content": [], "structuredContent": {{"a": {deep}}}}}}}')
        case "line":
            sys.stdout.write("y" * params["bytes"])
            write("")
            text(asked, "after it")
        case "chatter":
            for number in range(params["lines"]):
                write(f"line {number} that is no message")
            text(asked, "after it")
        case "progress":
            for number in range(3):
                told = {"progressToken": meta["progressToken"], "progress": number, "total": 2, "message": f"step {number}"}
                say({"method": "notifications/progress", "params": told})
                time.sleep(0.15)
            text(asked, "done")
        case "ask":
            for method in ("sampling/createMessage", "elicitation/create", "roots/list", "ping"):
                say({"id": f"mine-{method}", "method": method, "params": {}})
            ASKED.wait(10)
            text(asked, json.dumps(ANSWERS))
        case "huge":
            for _ in range(4):
                say({"method": "notifications/message", "params": {"level": "info", "data": "x" * params["bytes"]}})
            say({"method": "notifications/message", "params": {"level": "info", "data": "small"}})
            say({"id": "mine-huge", "method": "elicitation/create", "params": {"message": "x" * params["bytes"]}})
            text(asked, "after it")
        case "flood":
            for number in range(20_000):
                say({"id": f"flood-{number}", "method": "ping", "params": {}})
            text(asked, "after it")
        case "close":
            note("closing")
            os.close(1)
            time.sleep(600)


def tools(asked: dict) -> None:
    schema = {"type": "object"}
    at = int(asked.get("params", {}).get("cursor") or 0)
    match BEHAVIOUR:
        case "many":
            page = [{"name": f"tool_{n}", "inputSchema": schema} for n in range(at, at + 500)]
            result(asked, {"tools": page, "nextCursor": str(at + 500)})
        case "circle":
            result(asked, {"tools": [{"name": f"tool_{at}", "inputSchema": schema}], "nextCursor": "7"})
        case "pages":
            result(asked, {"tools": [], "nextCursor": str(at + 1)})
        case "tells":
            key = os.environ["API_KEY"]  # noqa: TID251
            tool = {"name": "act", "description": f"Acts with {key}.", "inputSchema": {"type": "object", "description": key}}
            result(asked, {"tools": [{**tool, "name": f"act_{at}"}], **({} if at else {"nextCursor": "1"})})
        case "odd":
            odd = [{"name": 5, "inputSchema": schema}, {"name": "no_schema"}, {"name": "bad", "inputSchema": {"type": "nonsense"}}, "text"]
            good = {
                "name": "good",
                "description": "It is.",
                "inputSchema": schema,
                "annotations": {"readOnlyHint": True, "idempotentHint": True},
            }
            result(asked, {"tools": [*odd, good, good]})
        case _:
            result(asked, {"tools": [{"name": "act", "description": "Acts.", "inputSchema": schema, "outputSchema": schema}]})


def initialize(asked: dict) -> None:
    match BEHAVIOUR:
        case "mute":
            return
        case "lies":
            result(asked, {"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}})
        case _:
            version = asked["params"]["protocolVersion"]
            result(asked, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "versatile", "version": "1"}})


def discover(asked: dict) -> None:
    """Of a revision that this server does not know."""
    if BEHAVIOUR == "strict":
        os._exit(5)
    say({"id": asked["id"], "error": {"code": -32601, "message": "unknown"}})


def handle(asked: dict) -> None:
    match asked.get("method"):
        case "initialize" | "server/discover" as method:
            initialize(asked) if method == "initialize" else discover(asked)
        case "tools/call":
            threading.Thread(target=call, args=(asked,), daemon=True).start()
        case "tools/list":
            tools(asked)
        case "ping":
            result(asked, {})
        case "notifications/cancelled":
            note("hung_up", json.dumps(asked["params"]))
        case None:
            ANSWERS.append({key: asked[key] for key in ("id", "result", "error") if key in asked})
            if len(ANSWERS) == 4:
                ASKED.set()


def main() -> None:
    match BEHAVIOUR:
        case "exits":
            sys.stderr.write("no configuration\n")
            sys.exit(4)
        case "garbage":
            write("Welcome to my server!")
        case "torrent":
            while True:
                write("z" * 100_000)
    for line in sys.stdin:
        handle(json.loads(line))


if __name__ == "__main__":
    main()
