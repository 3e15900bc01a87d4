"""The demo names the model, and what it may cost, before it spends money."""

import io

import pytest
from pydantic import SecretStr
from rich.console import Console

from workers.commands.demo_making import modelled
from workers.settings.making import CodingSettings, ModelSettings
from workers.settings.whole import Settings


@pytest.mark.parametrize(("limit", "told"), [(None, "no limit is set"), (0.5, "$0.5 at most")])
async def test_a_model_that_is_set_is_named_with_what_it_may_cost(limit: float | None, told: str) -> None:
    said = Console(file=io.StringIO(), width=1_000)
    settings = Settings(
        model=ModelSettings(model="some-model-9", model_api_key=SecretStr("k")), coding=CodingSettings(coding_limit_usd=limit)
    )
    async with modelled(settings, said) as own:
        assert own.model.model == "some-model-9"
    assert isinstance(said.file, io.StringIO)
    assert "The model is some-model-9, at Anthropic." in said.file.getvalue()
    assert told in said.file.getvalue()
