"""An MCP server on its stdin and stdout, whose tools leave effects: `python stdio_server.py FOLDER`.

`note` and `note_again` write `message` as a line to a file in the folder, then work on for `seconds`; `say` only answers.
"""

import json
import os
import secrets
import sys
import threading
from pathlib import Path
from typing import Any

_PROPERTIES = {"message": {"type": "string"}, "seconds": {"type": "number"}}
_SCHEMA = {"type": "object", "properties": _PROPERTIES, "required": ["message"]}
_HINTS: dict[str, dict[str, bool]] = {
    "say": {"readOnlyHint": True, "openWorldHint": False},
    "note": {"idempotentHint": False, "openWorldHint": False},
    "note_again": {"idempotentHint": True, "openWorldHint": False},
}
_TOOLS = [{"name": name, "description": "Of chaos.", "inputSchema": _SCHEMA, "annotations": hints} for name, hints in _HINTS.items()]
_SESSION: dict[str, Any] = {"capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}, "protocolVersion": "2025-11-25"}
_METHOD_NOT_FOUND = -32601

_turn = threading.Lock()


def _answer(request_id: object, **said: Any) -> None:
    with _turn:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request_id, **said}) + "\n")
        sys.stdout.flush()


def _called(request_id: object, name: str, arguments: dict[str, Any], effects: int) -> None:
    message = arguments["message"]
    if name != "say":
        os.write(effects, f"{message}\n".encode())
    told = {"message": message}
    result = {"content": [{"type": "text", "text": json.dumps(told)}], "structuredContent": told}
    threading.Timer(arguments.get("seconds", 0), _answer, (request_id,), {"result": result}).start()


def _main(folder: str) -> None:
    # Of each process: on every host it runs as another user, and may not write what that one has made.
    effects = os.open(Path(folder, f"effects-{secrets.token_hex(8)}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for line in sys.stdin:
        said = json.loads(line)
        match said:
            case {"id": request_id, "method": "initialize"}:
                _answer(request_id, result=_SESSION)
            case {"id": request_id, "method": "tools/list"}:
                _answer(request_id, result={"tools": _TOOLS})
            case {"id": request_id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}:
                _called(request_id, name, arguments, effects)
            case {"id": request_id, "method": "ping"}:
                _answer(request_id, result={})
            case {"id": request_id, "method": method}:
                _answer(request_id, error={"code": _METHOD_NOT_FOUND, "message": f"Method not found: {method}"})
            case _:
                pass


if __name__ == "__main__":
    _main(sys.argv[1])
