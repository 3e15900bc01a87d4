"""The evidence for a version, as text and rows for a person."""

from collections.abc import Iterator

from toolagent.contracts.making import CheckResult, Evidence

__all__ = ["CHECK_COLUMNS", "check_row", "origins", "summary"]

CHECK_COLUMNS = ("check", "state", "seconds", "seen")
_LONGEST = 120


def summary(evidence: Evidence | None) -> str:
    """The text of one cell; empty for a version without evidence."""
    if evidence is None:
        return ""
    asked = sum(check.applies for check in evidence.checks)
    return ", ".join((evidence.behaviour, f"{asked} checks", _maker(evidence), evidence.task_id))


def check_row(check: CheckResult) -> tuple[str, ...]:
    state = ("ok" if check.passed else "failed") if check.applies else "not asked"
    seen, _, more = check.details.partition("\n")
    is_cut = bool(more) or len(seen) > _LONGEST
    return (check.check, state, f"{check.seconds:.1f}", f"{seen[:_LONGEST]} …" if is_cut else seen)


def origins(evidence: Evidence) -> Iterator[str]:
    """Lines about how the version was made."""
    yield f"behaviour: {evidence.behaviour}, in round {evidence.rounds}"
    yield f"made by: {_maker(evidence)}, in {evidence.total_seconds:.1f} s, of which the gate took {evidence.seconds:.1f} s"
    if evidence.prompts:
        yield f"prompts: {', '.join(evidence.prompts)}"
    if evidence.answered_by and evidence.answered_by != (evidence.model,):
        yield f"the model calls itself: {', '.join(evidence.answered_by)}"
    if evidence.commit:
        yield f"commit: {evidence.commit}"
    if evidence.source:
        yield f"files: {evidence.source}"
    if evidence.lock:
        yield f"lock: sha256:{evidence.lock}"
    for one in evidence.left_out:
        yield f"left out: {one}"


def _maker(evidence: Evidence) -> str:
    if evidence.model is None:
        return "no model"
    unpriced = f" and {evidence.unpriced_turns} of unknown price" if evidence.unpriced_turns else ""
    lost = f" ({evidence.lost_turns} broke off)" if evidence.lost_turns else ""
    spent = f"{evidence.turns} turns{lost}, {evidence.tokens:,} tokens, ${evidence.cost_usd:.4f}{unpriced}"
    return f"{evidence.model} ({evidence.provider}), {spent}"
