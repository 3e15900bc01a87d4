"""Large outputs become references."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.calls.endings import Refused
from engine.calls.large_results import LargeResults
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.references import ResultReference

PLAIN = ToolManifest(tool_id="t", name="T")


@pytest.fixture
def files(database: Database, tmp_path: Path) -> FileStore:
    """A store for files of at most ten bytes, because results have their own limit."""
    return FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "content", 10)


@pytest.fixture
def results(files: FileStore) -> LargeResults:
    return LargeResults(files, inline_bytes=2000, max_bytes=10_000, max_values=1_000)


async def test_a_small_output_stays_what_it_is(results: LargeResults) -> None:
    fitted = await results.fit("call-1", PLAIN, "x" * 1998)
    assert (fitted.output, fitted.is_reference) == ("x" * 1998, False)


async def test_a_large_output_becomes_a_reference_to_its_json(results: LargeResults, files: FileStore) -> None:
    output: JsonValue = {"text": "é图" * 500, "number": 1.5}
    fitted = await results.fit("call-1", PLAIN, output)
    reference = ResultReference.model_validate(fitted.output)
    file = await files.get(reference.file_id)
    assert fitted.is_reference
    assert file is not None
    assert (file.name, reference.file, reference.size) == ("call-1.json", f"/files/{file.file_id}", file.size)
    encoded = b"".join([piece async for piece in files.read(file)])
    assert json.loads(encoded) == output
    assert reference.preview == encoded.decode()[:1000]


async def test_half_a_character_in_an_output_does_not_keep_it_from_being_a_result(results: LargeResults) -> None:
    fitted = await results.fit("call-1", PLAIN, {"\ud800": ["a\udfff", "😀"]})
    assert fitted.output == {"\ufffd": ["a\ufffd", "😀"]}


async def test_the_same_output_of_the_same_call_is_the_same_reference(results: LargeResults) -> None:
    first, again, other = [await results.fit(call_id, PLAIN, "x" * 3000) for call_id in ("call-1", "call-1", "call-2")]
    assert first == again != other


async def test_too_large_an_output_is_refused_with_size_and_limit(results: LargeResults) -> None:
    with pytest.raises(Refused) as refused:
        await results.fit("call-1", PLAIN, "x" * 10_000)
    assert refused.value.error.type is ErrorType.OUTPUT_VALIDATION_ERROR
    assert refused.value.error.details == {"size": 10_002, "limit": 10_000, "outcome": "executed"}


@pytest.mark.parametrize(
    ("output", "details"),
    [
        ([0] * 1_000, {"reason": "too_many_values", "values": 1_001, "limit": 1_000}),
        (json.loads("[" * 195 + "]" * 195), {"reason": "too_many_levels", "levels": 195, "limit": 190}),
    ],
    ids=["values", "levels"],
)
async def test_an_output_that_holds_too_much_is_refused_with_number_and_limit(
    results: LargeResults, output: JsonValue, details: dict[str, JsonValue]
) -> None:
    with pytest.raises(Refused) as refused:
        await results.fit("call-1", PLAIN, output)
    assert refused.value.error.type is ErrorType.OUTPUT_VALIDATION_ERROR
    assert refused.value.error.details == {**details, "outcome": "executed"}


async def test_a_large_output_is_checked_before_it_is_kept(results: LargeResults, tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        await results.fit("call-1", PLAIN.model_copy(update={"output_schema": {"type": "object"}}), "x" * 3000)
    assert [issue.keyword for issue in refused.value.issues] == ["type"]
    assert not (tmp_path / "content").exists()


async def test_a_large_output_of_a_tool_with_secrets_that_breaks_its_schema_is_not_told(results: LargeResults) -> None:
    schema: JsonSchema = {"properties": {"log": {"type": "array"}}, "required": ["done"], "additionalProperties": False}
    tool = ToolManifest(tool_id="t", name="T", input_schema={"properties": {"pin": {"writeOnly": True}}}, output_schema=schema)
    with pytest.raises(Refused) as refused:
        await results.fit("call-1", tool, {"log": "sesame" * 500, "sesame": 1})
    assert "sesame" not in refused.value.error.model_dump_json()
    assert sorted(issue.message for issue in refused.value.issues) == [
        '"done" is a required property',
        '*** is not of type "array"',
        "The value breaks 'additionalProperties'.",
    ]


async def test_what_is_kept_is_json_whatever_the_numbers(results: LargeResults, files: FileStore) -> None:
    fitted = await results.fit("call-1", PLAIN, [float("inf"), "x" * 3000])
    file = await files.get(ResultReference.model_validate(fitted.output).file_id)
    assert file is not None
    assert json.loads(b"".join([piece async for piece in files.read(file)]))[0] is None
