"""`<ACTION>` in, `<OBSERVATION>` out, by the whole service."""

from collections.abc import Generator
from pathlib import Path

import pytest
from defusedxml import ElementTree

from tests.system.service_process import ServiceProcess

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def service(catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[ServiceProcess]:
    service = ServiceProcess(tmp_path_factory.mktemp("actions"), catalog)
    service.start()
    try:
        yield service
    finally:
        service.end()
        service.wait_until_nothing_is_left()


@pytest.mark.parametrize(
    ("said", "status", "content"),
    [
        (
            "<ACTION><tool_id>calculator</tool_id><inputs><input name='expression'><![CDATA[6 * 7]]></input></inputs></ACTION>",
            "success",
            "Tool calculator executed successfully. Output: ",
        ),
        ("Well: <ACTION><calculator><expression>6 * 7</expression></calculator></ACTION>", "success", "Tool calculator executed success"),
        (
            "<ACTION><calculator/></ACTION>",
            "error",
            "Tool calculator failed. Error type: ParameterValidationError. Message: Input parameter",
        ),
        (
            "<ACTION><calculater/></ACTION>",
            "error",
            "Tool calculater failed. Error type: ToolNotFoundError. Message: There is no tool 'calcul",
        ),
        ("<ACTION><calculator></ACTION>", "error", "The action failed. Error type: MalformedActionError. Message: The block is not XML"),
        ("<ACTION><failing-tool/>", "error", "The action failed. Error type: MalformedActionError. Message: The block does not end"),
    ],
)
def test_an_action_is_done_and_observed(service: ServiceProcess, said: str, status: str, content: str) -> None:
    answer = service.http.post("/agent/action", content=said, headers={"Content-Type": "text/plain"})
    assert answer.status_code == 200
    observation = ElementTree.fromstring(answer.content)
    assert observation.findtext("status") == status
    assert (observation.findtext("content") or "").startswith(content)
