"""A script tool for the conformance suite of runtimes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from engine.runtimes.parts import RuntimeParts
from engine.runtimes.scripts.runtime import ScriptRuntime
from tests.runtimes.conformance import Subject
from tests.scripts.harness import script_service
from toolagent.contracts.manifest import SecurityContext, ToolManifest
from toolagent.contracts.sources import ScriptLanguage, ScriptSource

__all__ = ["script"]

VERSATILE = """
import json, os, sys, time
params = json.load(sys.stdin)
match params.get("mode"):
    case "fail": sys.exit("it failed")
    case "garble": print("no json")
    case "hang":
        open(".cache/hanging", "w").close()
        time.sleep(600)
    case "call_id": print(json.dumps(os.environ["TOOL_AGENT_CALL_ID"]))
    case _: print(json.dumps(params))
"""


@asynccontextmanager
async def script(parts: RuntimeParts) -> AsyncGenerator[Subject]:
    state = parts.local.state
    async with script_service(state, state / "scripts", state / "environments") as scripts:
        path = scripts.write("versatile/main.py", VERSATILE)
        context = SecurityContext.model_validate({"fileAccess": {"allowWrite": [".cache/**"]}})
        hanging = state / "tools/versatile/files/.cache/hanging"

        async def began() -> None:
            async with asyncio.timeout(60):
                while not hanging.exists():  # noqa: ASYNC110 - another process makes it
                    await asyncio.sleep(0.02)
            hanging.unlink()

        async def hung_up() -> None:
            async with asyncio.timeout(60):
                while scripts.leftovers():  # noqa: ASYNC110 - other processes end
                    await asyncio.sleep(0.02)

        yield Subject(
            runtime=ScriptRuntime(scripts.service),
            tool=ToolManifest(tool_id="versatile", name="Versatile", security_context=context),
            source=ScriptSource(script_path=path, language=ScriptLanguage.PYTHON),
            absent=ScriptSource(script_path="nowhere.py", language=ScriptLanguage.PYTHON),
            output_dir=state / "output",
            answers=({"x": [1, "二"]}, lambda output: output == {"x": [1, "二"]}),
            refuses=None,
            fails={"mode": "fail"},
            garbles={"mode": "garble"},
            hangs={"mode": "hang"},
            call_id_of=({"mode": "call_id"}, lambda output: output),
            began=began,
            hung_up=hung_up,
        )
