"""Another commit of ours beside this tree: its sources and environment, and how much dearer than there a call is here."""

import hashlib
import io
import statistics
import subprocess
import tarfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.environments import made_environment
from bench.results import Row, Verdict
from bench.service import ROOT, Tree
from bench.stage import OURS, THEN

ROW_BOUND, MEAN_BOUND = 1.1, 1.05
_LOCK = "requirements.lock"


class NoSuchCommitError(RuntimeError):
    """Git does not know it; the message is git's."""


@contextmanager
def checked_out(commit: str, folder: Path, repository: Path = ROOT) -> Generator[Tree]:
    """The commit's files in a folder below `folder`, which is gone after the block; git keeps no trace of it. Raises NoSuchCommitError.

    Its Python is ours when both lock the same, else of an environment of its own, which is kept as those of the peers are.
    """
    # The name could be taken for an option.
    named = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}"],  # noqa: S607 - the git of whoever measures
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    if named.returncode != 0:
        raise NoSuchCommitError(f"There is no commit {commit!r} in {repository.name}; `git log` shows those that there are.")
    with TemporaryDirectory(prefix="then-", dir=folder) as name:
        root = Path(name)
        packed = subprocess.run(["git", "archive", named.stdout.strip()], cwd=repository, capture_output=True, check=True).stdout  # noqa: S607
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(root, filter="data")
        lock = root / _LOCK
        same = _digest(lock) == _digest(repository / _LOCK)
        yield Tree(root) if same else Tree(root, str(made_environment(f"then-{_digest(lock)[:8]}", lock, "--require-hashes")))


def judge_against(rounds: Sequence[Row], commit: str) -> list[Verdict]:
    """For each row that both have, how many times worse ours is in median latency and in calls a second, and the geometric mean of all.

    Each ratio is the median of those of the rounds, each round with its neighbour in time.
    """
    ratios = {
        f"{row.label.partition(': ')[2]}, {row.callers} callers: {what} against {commit}": ratio
        for row in _first_of_each(rounds)
        for what, ratio in _ratios(rounds, row)
    }
    verdicts = [_verdict(label, ratio, ROW_BOUND) for label, ratio in ratios.items()]
    if ratios:
        verdicts.append(_verdict(f"geometric mean of these against {commit}", statistics.geometric_mean(ratios.values()), MEAN_BOUND))
    return verdicts


def _first_of_each(rounds: Sequence[Row]) -> list[Row]:
    first: dict[tuple[str, int], Row] = {}
    for row in rounds:
        if row.target.startswith(f"{OURS}."):
            first.setdefault((row.target, row.callers), row)
    return list(first.values())


def _ratios(rounds: Sequence[Row], row: Row) -> Iterator[tuple[str, float]]:
    ours = [one for one in rounds if (one.target, one.callers) == (row.target, row.callers)]
    name = f"{THEN}.{row.target.partition('.')[2]}"
    then = [one for one in rounds if (one.target, one.callers) == (name, row.callers)]
    # A round that failed on one side has no neighbour, and then nobody knows whose it was.
    if len(ours) == len(then):
        yield "p50", statistics.median(now.p50_ms / before.p50_ms for now, before in zip(ours, then, strict=True))
        yield "time per call", statistics.median(before.per_second / now.per_second for now, before in zip(ours, then, strict=True))


def _verdict(label: str, ratio: float, bound: float) -> Verdict:
    return Verdict(label=label, sign="≤", bound=bound, unit="×", ratio=ratio, met=ratio <= bound)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
