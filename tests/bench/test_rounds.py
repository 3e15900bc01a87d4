"""Rows of the results: complete measurements only, and each number of callers separately."""

import json
from collections.abc import Generator as Iterator
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from bench.generator import Generator
from bench.load import NEW_KEY, Job
from bench.rounds import Measurements, Plan, Target, measure

_ROOT = Path(__file__).resolve().parents[2]


class _Tool(BaseHTTPRequestHandler):
    """Answers with its path; after `broken_after` answers, with a wrong one."""

    protocol_version = "HTTP/1.1"
    broken_after = 12
    answers = 0
    paths: list[str] = []
    keys: list[str | None] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        kind = type(self)
        kind.paths.append(self.path)
        kind.keys.append(self.headers["Idempotency-Key"])
        kind.answers += self.path == "/breaks"
        is_right = self.path != "/breaks" or kind.answers <= kind.broken_after
        said = json.dumps({"message": "hello"} if is_right else {"error": "tired"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    _Tool.answers, _Tool.paths, _Tool.keys = 0, [], []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Tool) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def _measured(targets: Sequence[Target], plan: Plan) -> Measurements:
    with Generator(_ROOT) as generator:
        return measure(generator, targets, plan)


def test_a_way_that_answers_wrongly_in_one_round_has_no_row_of_the_others(url: str) -> None:
    # Without a warm-up to speak of, the first round is over before the answers go wrong.
    targets = [Target(name, name, f"{url}/{name}", "{}", {}) for name in ("holds", "breaks")]
    made = _measured(targets, Plan(rounds=3, seconds=1, callers=(1,), warm_up_s=0.001, calls=8))
    assert [row.target for row in made.rows] == ["holds"]
    assert {row.target for row in made.rounds} == {"holds", "breaks"}
    assert made.failures


def test_a_way_is_left_out_with_other_numbers_of_callers_than_its_own(url: str) -> None:
    targets = [Target("any", "any", f"{url}/any", "{}", {}), Target("one", "one", f"{url}/one", "{}", {}, callers=(1,))]
    made = _measured(targets, Plan(rounds=1, seconds=1, callers=(4, 1), warm_up_s=0.001, calls=8))
    assert {(row.target, row.callers) for row in made.rows} == {("any", 1), ("any", 4), ("one", 1)}
    assert made.failures == []


def test_what_happens_before_each_measurement_takes_the_place_of_the_warm_up(url: str) -> None:
    before: list[int] = []
    target = Target("any", "any", f"{url}/any", "{}", {}, before=lambda: before.append(_Tool.answers), notes="hello")
    made = _measured([target], Plan(rounds=2, seconds=1, callers=(1,), warm_up_s=5, calls=3))
    assert len(before) == 2
    assert len(_Tool.paths) == 6
    assert [row.noted for row in made.rows] == [1.0]


def test_every_request_can_have_a_key_of_its_own(url: str) -> None:
    with Generator(_ROOT) as generator:
        generator.run(Job(url=f"{url}/any", body="{}", expect="message", headers={"Idempotency-Key": NEW_KEY}, callers=2, calls=6))
    assert len(set(_Tool.keys)) == 6


def test_every_second_round_goes_backwards_and_few_callers_come_first(url: str) -> None:
    targets = [Target(name, name, f"{url}/{name}", "{}", {}) for name in "ab"]
    made = _measured(targets, Plan(rounds=2, seconds=1, callers=(2, 1), warm_up_s=0.001, calls=2))
    assert [(row.callers, row.target) for row in made.rounds] == [(n, name) for n in (1, 2) for name in "abba"]


def test_a_measurement_whose_time_is_over_before_it_began_still_has_a_call(url: str) -> None:
    # As on a machine that is so busy that the generator gets no turn during a warm-up of a millisecond.
    with Generator(_ROOT) as generator:
        assert generator.run(Job(url=f"{url}/any", body="{}", expect="message", seconds=0)).calls == 1
