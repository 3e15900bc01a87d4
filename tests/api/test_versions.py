"""Versions over HTTP."""

import pytest

from tests.api.conftest import COMPRESS, COMPRESS_SOURCE, House


async def test_versions_are_listed_activated_and_deactivated(stocked: House) -> None:
    await stocked.registry.register(COMPRESS.model_copy(update={"version": "1.10.0"}), (COMPRESS_SOURCE,))
    listed = (await stocked.http.get("/tools/image_compress_api/versions")).json()
    assert listed["active_version"] == "1.10.0"
    assert [(one["version"], one["status"], one["is_active"]) for one in listed["versions"]] == [
        ("1.10.0", "active", True),
        ("1.0.0", "active", False),
    ]
    for _ in range(2):
        answer = await stocked.http.post("/tools/image_compress_api/versions/1.0.0/activate")
        assert (answer.status_code, answer.json()["active_version"]) == (200, "1.0.0")
    for _ in range(2):
        answer = await stocked.http.post("/tools/image_compress_api/versions/1.0.0/deactivate")
        assert [one["status"] for one in answer.json()["versions"]] == ["active", "inactive"]
    assert (await stocked.http.get("/tools/image_compress_api")).json()["status"] == "inactive"


@pytest.mark.parametrize("action", ["activate", "deactivate"])
@pytest.mark.parametrize("version", ["9.9.9", "%00", "^1", "x" * 500])
async def test_an_unknown_version_is_a_problem_that_names_those_there_are(stocked: House, action: str, version: str) -> None:
    answer = await stocked.http.post(f"/tools/weather/versions/{version}/{action}")
    assert (answer.status_code, answer.json()["type"]) == (404, "tool_not_found")
    assert answer.json()["details"] == {"versions": ["1.0.0"]}


@pytest.mark.parametrize("tool_id", ["wether", "No-Id", "a%00b"])
async def test_versions_of_an_unknown_tool_are_a_problem(stocked: House, tool_id: str) -> None:
    assert (await stocked.http.get(f"/tools/{tool_id}/versions")).status_code == 404
    assert (await stocked.http.post(f"/tools/{tool_id}/versions/1.0.0/activate")).status_code == 404
