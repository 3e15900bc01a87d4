"""A model that keeps to a script, in a process of its own, and what a chat asks it."""

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from activities.chat_tools import CHAT_TOOLS
from bench.processes import Child
from bench.service import python_path
from toolagent.contracts.chats import ChatRole, ChatTurn
from toolagent.testing.servers.scenario import Scenario, Turn
from toolagent_service.agents.service import RECENT_TURNS, opening

ANSWER = "There is echo: it gives back what it gets."
AT_ONCE = Scenario(name="answers at once", turns=(Turn(text=ANSWER, repeat="forever"),))

_MODEL = "scripted"
_READY = "ready "
_MAX_TOKENS = 8_192


class ScriptedModel:
    """Started and found ready by its constructor."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        script = folder / "scenario.json"
        script.write_text(scenario.model_dump_json(exclude_defaults=True), "utf-8")
        command = [sys.executable, "-m", "toolagent.testing.servers", "model", "--port", "0", "--scenario", str(script)]
        self.child = Child(command, folder, "model", {"PYTHONPATH": python_path()})
        try:
            self.child.ready(lambda: _READY in self.child.output)
        except RuntimeError:
            self.child.stop()
            raise
        self.url = self.child.output.partition(_READY)[2].split()[0]

    @property
    def messages_url(self) -> str:
        return f"{self.url}/v1/messages"

    @property
    def settings(self) -> Mapping[str, str]:
        """Of a service that asks it."""
        return {"MODEL": _MODEL, "MODEL_API_KEY": "any", "MODEL_BASE_URL": self.url}


def body_of_a_turn(message: str, prompt: str) -> str:
    """What a chat with many turns asks a model, so that others can ask the same: functions, prompt, and the last turns."""
    said = {ChatRole.USER: message, ChatRole.ASSISTANT: ANSWER}
    turns = [
        ChatTurn(number=number + 1, role=list(said)[number % 2], text=list(said.values())[number % 2], at=datetime.now(UTC), message_id="")
        for number in range(RECENT_TURNS)
    ]
    mark: JsonValue = {"type": "ephemeral"}
    tools: list[dict[str, JsonValue]] = [tool.offer.model_dump(mode="json") for tool in CHAT_TOOLS]
    tools[-1]["cache_control"] = mark
    asked = [{"type": "text", "text": opening(message, turns, older=0), "cache_control": mark}]
    return json.dumps(
        {
            "model": _MODEL,
            "max_tokens": _MAX_TOKENS,
            "stream": True,
            "system": [{"type": "text", "text": prompt, "cache_control": mark}],
            "tools": tools,
            "messages": [{"role": "user", "content": asked}],
        }
    )
