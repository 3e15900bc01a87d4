"""The comparison with another commit, which leaves nothing of that commit."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bench.against import NoSuchCommitError, checked_out, judge_against
from bench.processes import bare_environment
from bench.results import Results, Row
from bench.rounds import Target
from bench.service import ROOT, python_path
from bench.stage import side_by_side
from tests.system.leftovers import processes_of

pytestmark = pytest.mark.timeout(240)

_COMMIT = "0123abc"


def _round(target: str, p50_ms: float, per_second: float, callers: int = 1) -> Row:
    label = f"{target.partition('.')[0]}: {target.partition('.')[2]}"
    return Row(target=target, label=label, callers=callers, p50_ms=p50_ms, p99_ms=1.0, per_second=per_second, cpu_ms={})


def test_each_row_is_compared_with_its_neighbour_in_time_and_all_by_their_geometric_mean() -> None:
    # The second round met a busy machine: a median of each side by itself would say 1.5 and 0.
    rounds = [_round("ours.echo", 4.4, 100), _round("then.echo", 4.0, 100), _round("ours.echo", 8.8, 50), _round("then.echo", 8.0, 64)]
    rounds += [_round("plain", 1.0, 1000), _round("ours.free", 1.0, 10, 16), _round("then.free", 2.0, 5, 16)]
    judged = [(verdict.label, pytest.approx(verdict.ratio), verdict.met) for verdict in judge_against(rounds, _COMMIT)]
    assert judged == [
        (f"echo, 1 callers: p50 against {_COMMIT}", 1.1, True),
        (f"echo, 1 callers: time per call against {_COMMIT}", 1.14, False),
        (f"free, 16 callers: p50 against {_COMMIT}", 0.5, True),
        (f"free, 16 callers: time per call against {_COMMIT}", 0.5, True),
        (f"geometric mean of these against {_COMMIT}", pytest.approx((1.1 * 1.14 * 0.25) ** 0.25), True),
    ]


def test_a_mean_above_its_own_bound_is_not_met_although_every_row_is() -> None:
    judged = judge_against([_round("ours.echo", 1.09, 100), _round("then.echo", 1.0, 109)], _COMMIT)
    assert [verdict.met for verdict in judged] == [True, True, False]


def test_what_only_one_side_has_measured_is_not_judged() -> None:
    assert judge_against([_round("ours.echo", 1, 1), _round("ours.echo", 1, 1), _round("then.echo", 1, 1)], _COMMIT) == []


def test_a_commit_is_a_tree_of_its_own_while_it_is_measured_and_gone_after(tmp_path: Path) -> None:
    before = subprocess.run(["git", "worktree", "list"], cwd=ROOT, capture_output=True, check=True).stdout  # noqa: S607
    with checked_out("HEAD", tmp_path) as tree:
        assert (tree.root / "workers/__main__.py").is_file()
        assert tree.root.is_relative_to(tmp_path)
        assert tree.python == sys.executable  # both lock the same
    assert [*tmp_path.iterdir()] == []
    assert subprocess.run(["git", "worktree", "list"], cwd=ROOT, capture_output=True, check=True).stdout == before  # noqa: S607


@pytest.mark.parametrize("name", ["no-such-commit", "--output=x", "HEAD:Makefile"])
def test_a_commit_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(NoSuchCommitError, match="There is no commit"), checked_out(name, tmp_path):
        pass
    assert [*tmp_path.iterdir()] == []


def test_rows_of_two_trees_are_measured_side_by_side() -> None:
    def target(name: str) -> Target:
        return Target(name, name, "", "", {})

    names = ["plain", "ours.echo", "ours.free", "then.echo", "then.free", "bare.local"]
    chosen = [one.name for one in side_by_side([target(name) for name in names])]
    assert chosen == ["plain", "ours.echo", "then.echo", "ours.free", "then.free", "bare.local"]


@pytest.mark.long
def test_a_few_calls_of_this_commit_and_of_the_last_one_are_measured_and_nothing_is_left(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="tool-agent-test-") as temporary:
        few = ["--targets", "ours.echo", "--callers", "1", "--calls", "5", "--rounds", "1", "--results", str(tmp_path), "--name", "few"]
        done = subprocess.run(
            [sys.executable, "-m", "bench", "--quick", "--only", "calls", "--against", "HEAD", *few],
            cwd=tmp_path,
            env=bare_environment() | {"PYTHONPATH": python_path(), "TMPDIR": temporary},
            capture_output=True,
            text=True,
            timeout=220,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert [*Path(temporary).iterdir()] == []
        assert processes_of(Path(temporary)) == {}
    results = Results.model_validate_json((tmp_path / "few.json").read_text("utf-8"))
    assert [row.target for row in results.rows] == ["ours.echo", "then.echo"]
    assert len(results.verdicts) == 3
