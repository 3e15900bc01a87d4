"""A whole build whose model asks for fifty forbidden packages."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.making.dependencies.bad_packages import bad_packages
from tests.making.dependencies.test_gate import INVENTED, NEAR, YOUNG
from tests.system.catalog import make_catalog
from tests.system.making_tasks import SCENARIOS, asked, ended, rows, serving, word_counter
from tests.system.service_process import run_tool
from toolagent.contracts.tasks import TaskState
from toolagent.testing.servers.index_server import IndexServer
from toolagent.testing.servers.scenario import Scenario, ToolUseBlock, load_scenario

pytestmark = pytest.mark.timeout(300)


def _asking_for_all() -> Scenario:
    """The scenario, with one use for each bad package."""
    scenario = load_scenario(SCENARIOS / "word_parts.yaml")
    turns = list(scenario.turns)
    for place, names in enumerate((INVENTED, (*NEAR, *YOUNG)), 1):
        uses = tuple(ToolUseBlock(name="uv_add_dependency", input={"project_dir": "words", "package": name}) for name in names)
        turns[place] = turns[place].model_copy(update={"tool_use": uses})
    return scenario.model_copy(update={"turns": tuple(turns)})


@pytest.mark.long
def test_none_of_50_bad_packages_gets_into_what_a_model_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_catalog(tmp_path)
    with IndexServer(bad_packages(datetime.now(UTC))) as index:
        for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.index_url)
        with serving(tmp_path, data, _asking_for_all()) as (service, model):
            spec = {**word_counter("word_counter"), "examples": []}
            made = ended(service, asked(service, spec))
            assert made.status is TaskState.COMPLETED, (made.reason, model.unmet())
            assert model.unmet() == ()
            assert run_tool(service.http, "word_counter", {"text": "one two"})[1].result == {"words": 2}
            refused = rows(
                service, "SELECT count(*) FROM task_notes WHERE kind = 'TOOL_RESULT' AND text LIKE '%uv_add_dependency | error%'"
            )
            assert refused == [(50,)]
            installed = {path.name for path in service.environments.glob("*/**/*.dist-info")}
    assert installed == {"word_parts-1.0.dist-info"}
    assert [*index.downloads] == ["word_parts-1.0-py3-none-any.whl"]
