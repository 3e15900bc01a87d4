"""What the coding agent is told of its task, before anything else."""

import json
from collections.abc import Sequence

from toolagent.contracts.making import Inspection
from toolagent.contracts.making_steps import BriefStep
from toolagent.contracts.task_specs import BuildTool, Example, GithubDeploy, RepairTool
from toolagent.core.withheld import divided

__all__ = ["briefing"]

_LONGEST = 24_000
_MOST_FINDINGS = 20


def briefing(step: BriefStep) -> str:
    """Everything but the examples that are withheld, within bounds."""
    shown, withheld = divided(step.task_id, step.spec.examples)
    parts = [_wanted(step), _repository(step.inspection), _examples(shown, len(withheld)), _notes(step.notes)]
    text = "\n\n".join(part for part in parts if part)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n… (cut: the whole has {len(text):,} characters)"


def _wanted(step: BriefStep) -> str:
    match step.spec:
        case BuildTool(tool_name=name, description=description, runtime=runtime):
            return f"Make the tool `{name}`{_in(runtime)}.\n\n{description}"
        case GithubDeploy(tool_name=name, repo_url=url, description=description, runtime=runtime):
            about = f"\n\n{description}" if description else ""
            return f"Make the tool `{name}`{_in(runtime)} of the repository {url}, which lies in the folder `repository`.{about}"
        case RepairTool(tool_id=name, error=error, description=description):
            return "\n\n".join(
                part for part in (f"Mend the tool `{name}`.", f"What went wrong: {error}" if error else "", description) if part
            )


def _in(runtime: str | None) -> str:
    return f" (runtime: {runtime})" if runtime else ""


def _repository(found: Inspection) -> str:
    if not found.files:
        return ""
    lines = [f"- {one.kind.value} in {one.path}: {one.summary}" for one in found.findings[:_MOST_FINDINGS]]
    readme = f"\n\nIts README begins:\n\n{found.readme}" if found.readme else ""
    return "\n".join([f"The repository has {found.files} files. Recognised without running anything:", *(lines or ["- nothing"])]) + readme


def _examples(shown: Sequence[Example], withheld: int) -> str:
    if not shown and not withheld:
        return "There are no examples."
    lines = [json.dumps(example.model_dump(mode="json"), ensure_ascii=False) for example in shown]
    more = f"\n{withheld} more are kept back and tried at the end." if withheld else ""
    return "Examples (the expected output is a part of what must come):\n" + "\n".join(lines) + more


def _notes(notes: Sequence[str]) -> str:
    return "What was tried without you:\n" + "\n".join(f"- {note}" for note in notes) if notes else ""
