from concurrent.futures import ThreadPoolExecutor

from conftest import Server

TEXT = "人工智能正在改变医疗行业。深度学习模型的准确率不断提高。人工智能应当成为医生的助手。" * 4


def test_it_answers_health_calls_and_bad_input_and_ends_on_sigterm(server: Server) -> None:
    assert server.ask("GET", "/health") == (200, {"status": "ok", "active": 0})
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: server.call(text=TEXT, max_length=40), range(4)))
    assert {status for status, _ in answers} == {200}
    assert len({body["summary"] for _, body in answers}) == 1
    status, body = server.call(text="")
    assert (status, body["error"]["type"], body["error"]["details"]) == (422, "validation_error", {"field": "text"})
    assert server.terminate() == 0
