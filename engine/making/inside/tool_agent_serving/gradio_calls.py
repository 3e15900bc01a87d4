"""Serves the named endpoints of a running Gradio app: their parameters, and calls."""

import asyncio
import functools
import json
import re
import sys
import traceback

from .facade import DOCUMENT, HEALTH, HEALTHY, answer, whole

_FILES = ("filepath", "FileData", "gradio.FileData", "ImageData")
_BETWEEN = re.compile(r"numeric value between (-?[0-9.]+) and (-?[0-9.]+)")
"""Gradio's description of a slider."""
_REFERENCE = "$ref"
_CALLER_ERROR, _FAILURE, _NOT_FOUND = 422, 500, 404


class GradioCalls:
    def __init__(self, url):
        from gradio_client import Client

        self._client = Client(url, verbose=False)
        self._endpoints, self._left_out = _endpoints(self._client.view_api(return_format="dict", print_info=False) or {})

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        path, method = scope["path"], scope["method"]
        if path == DOCUMENT:
            await answer(send, json.dumps(self._document()).encode())
        elif path == HEALTH:
            await answer(send, b'{"status": "ok"}')
        elif method == "POST" and path in self._endpoints:
            status, body = await self._called(path, await _body(receive))
            await answer(send, json.dumps(body, default=str).encode(), status)
        else:
            await answer(send, b'{"detail": "There is no such endpoint."}', _NOT_FOUND)

    async def _called(self, path, body):
        try:
            params = json.loads(body or b"{}")
        except ValueError as error:
            return _CALLER_ERROR, {"detail": "The body is no JSON: {}".format(error)}
        names = {name for name, _, _ in self._endpoints[path]}
        if not isinstance(params, dict) or set(params) - names:
            return _CALLER_ERROR, {"detail": "It takes an object with: {}.".format(", ".join(sorted(names)) or "nothing")}
        call = functools.partial(self._client.predict, api_name=path, **params)
        try:
            return 200, await asyncio.get_running_loop().run_in_executor(None, call)
        except TypeError as error:
            return _CALLER_ERROR, {"detail": str(error)}
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            return _FAILURE, {"detail": "{}: {}".format(type(error).__name__, error)}

    def _document(self):
        paths = {path: {"post": _operation(path, parameters)} for path, parameters in self._endpoints.items()}
        return dict(whole("app", {**HEALTHY, **paths}), **{"x-left-out": self._left_out})


def _endpoints(info):
    """The parameters of each endpoint, and why others are left out."""
    found, left_out = {}, {}
    for path, endpoint in info.get("named_endpoints", {}).items():
        try:
            found[path] = [one for one in map(_parameter, endpoint.get("parameters", ())) if one is not None]
        except ValueError as error:
            left_out["POST {}".format(path)] = str(error)
    return found, left_out


def _parameter(told):
    """Its name, its schema, and whether it is required; None for an optional file. Raises ValueError for a required file."""
    name = told.get("parameter_name") or told.get("label")
    has_default = bool(told.get("parameter_has_default"))
    kind = told.get("type")
    schema = dict(kind) if isinstance(kind, dict) else {}
    if _is_file(told):
        if has_default:
            return None
        raise ValueError("It takes a file ({}: {}), which is not handed to it.".format(name, told.get("component", "File")))
    if _REFERENCE in json.dumps(schema):
        schema = {}  # its references lead to another document
    label = told.get("label")
    if isinstance(label, str) and label != name:
        schema.setdefault("description", label)
    between = _BETWEEN.fullmatch(str(schema.get("description", "")))
    if between and schema.get("type") in ("number", "integer"):
        schema.update(minimum=float(between[1]), maximum=float(between[2]))
    if has_default and told.get("parameter_default") is not None:
        schema["default"] = told["parameter_default"]
    return name, schema, not has_default


def _is_file(told):
    said = json.dumps([told.get("type"), told.get("python_type")])
    return any('"{}"'.format(word) in said for word in _FILES)


def _operation(path, parameters):
    schema = {
        "type": "object",
        "properties": {name: schema for name, schema, _ in parameters},
        "required": [name for name, _, needed in parameters if needed],
        "additionalProperties": False,
    }
    return {
        "operationId": path.strip("/"),
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"description": "What the endpoint returns; of several outputs a list."}},
    }


async def _body(receive):
    pieces = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)
