from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from conftest import Server
from PIL import Image


def test_it_answers_health_calls_and_bad_input_and_ends_on_sigterm(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "图.png"
    Image.new("RGB", (30, 20), "red").save(path)
    assert server.ask("GET", "/health") == (200, {"status": "ok", "active": 0})
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: server.call(images=[str(path)] * 3), range(8)))
    assert {status for status, _ in answers} == {200}
    assert len({body["image"] for _, body in answers}) == 8
    assert all(Path(body["image"]).parent == server.output and Path(body["image"]).is_file() for _, body in answers)
    status, body = server.call(images=[str(path)], spacing=-1)
    assert (status, body["error"]["type"], body["error"]["details"]) == (422, "validation_error", {"field": "spacing"})
    assert server.call()[1]["error"]["details"] == {"field": "images"}
    assert server.call(images=["/no/such.png"])[1]["error"]["details"] == {"field": "images[0]"}
    assert server.ask("POST", "/", b"{not json")[0] == 422
    assert server.ask("GET", "/")[0] == 404
    assert server.terminate() == 0


def test_a_failure_of_the_tool_is_an_execution_error(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (3, 2)).save(path)
    server.output.write_text("a file where the folder should be")
    status, body = server.call(images=[str(path)])
    assert (status, body["error"]["type"]) == (500, "execution_error")


def test_health_answers_while_a_call_is_worked_on(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    Image.effect_noise((1200, 1200), 90).save(path)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(server.call, images=[str(path)] * 12, direction="grid")
        seen = set()
        while not call.done():
            status, body = server.ask("GET", "/health")
            assert status == 200
            seen.add(body["active"])
    assert call.result()[0] == 200
    assert 1 in seen
