"""Tasks for the store."""

from datetime import UTC, datetime, timedelta

from engine.store.database import Database
from engine.store.evidence import write_evidence
from toolagent.contracts.making import Evidence, MakeTask
from toolagent.contracts.task_specs import BuildTool, Example, GithubDeploy, RepairTool
from toolagent.contracts.tasks import TaskState

AT = datetime(2026, 11, 21, 12, 0, 0, 5, tzinfo=UTC)
EXAMPLE = Example(input={"text": "one two\x00"}, expected_output={"words": 2})
BUILD = BuildTool(tool_name="word_counter", description="Zähle die Wörter, 数一数\x00.", examples=(EXAMPLE,))


def task(number: int = 1, spec: BuildTool | GithubDeploy | RepairTool = BUILD, *, later_s: float = 0.0) -> MakeTask:
    """The `number`-th task, created this number of seconds after noon."""
    prefix, tool_id = ("repair", spec.tool_id) if isinstance(spec, RepairTool) else ("create", spec.tool_name)
    return MakeTask(
        task_id=f"{prefix}_{number:08x}",
        status=TaskState.PENDING,
        spec=spec,
        description="words\N{CHECK MARK}",
        tool_id=tool_id,
        created_at=AT + timedelta(seconds=later_s or number),
    )


async def put_evidence(database: Database, tool_id: str, version: str, evidence: Evidence) -> None:
    """Store evidence without its version."""
    async with database.write() as connection:
        await write_evidence(connection, tool_id, version, evidence)
