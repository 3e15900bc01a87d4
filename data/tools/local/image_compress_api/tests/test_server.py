from pathlib import Path

from conftest import Server
from PIL import Image


def test_it_answers_health_calls_and_bad_input_and_ends_on_sigterm(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "照片.jpg"
    Image.effect_noise((300, 200), 60).save(path, quality=98)
    assert server.ask("GET", "/health") == (200, {"status": "ok", "active": 0})
    status, body = server.call(image_path=str(path), quality=40)
    assert (status, body["recompressed"], Path(body["image"]).parent) == (200, True, server.output)
    assert body["compressed_size"] < path.stat().st_size
    status, body = server.call(image_path=str(path), quality=101)
    assert (status, body["error"]["type"], body["error"]["details"]) == (422, "validation_error", {"field": "quality"})
    assert server.call(image_path="/no/such.jpg")[0] == 422
    assert server.terminate() == 0
