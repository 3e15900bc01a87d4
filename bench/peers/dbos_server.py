"""DBOS behind a minimal FastAPI route, one workflow of one step: `python dbos_server.py PORT DATABASE_URL`; runs in its own environment."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUntypedFunctionDecorator=false

import sys
from typing import Any

import uvicorn
from dbos import DBOS
from fastapi import FastAPI

_PORT, _DATABASE = int(sys.argv[1]), sys.argv[2]

_app = FastAPI()
DBOS(config={"name": "bench", "system_database_url": _DATABASE, "log_level": "WARNING", "run_admin_server": False})


@DBOS.step()
async def echo(message: str) -> dict[str, object]:
    return {"message": message}


@DBOS.workflow()
async def call(message: str) -> dict[str, object]:
    return await echo(message)


@_app.post("/echo")
async def run(body: dict[str, Any]) -> dict[str, object]:
    return await call(body["message"])


DBOS.launch()
uvicorn.run(_app, host="127.0.0.1", port=_PORT, log_level="warning", access_log=False)
