"""The shipped tools through HTTP, with real pictures and real text."""

import io

import pytest
from PIL import Image
from pydantic import JsonValue

from tests.system.service_process import ServiceProcess, run_tool
from toolagent.contracts.calls import ErrorType

# The first call of each builds its environment.
pytestmark = pytest.mark.timeout(300)

_CHINESE = (
    "人工智能正在改变医疗行业。医生利用人工智能分析影像,可以更早发现疾病。昨天的午饭很好吃。"
    "人工智能还能帮助医院安排床位,减少病人等待的时间。专家认为,医疗行业需要规范人工智能的使用。"
)
_ENGLISH = (
    "Solar power is growing faster than any other source of energy. My neighbour has a cat. "
    "Cheaper panels make solar power attractive to households. The energy from solar power can be stored in batteries. "
    "Experts expect solar power to supply a third of all energy within twenty years."
)


def _png(size: tuple[int, int], colour: str) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", size, colour).save(content, "PNG")
    return content.getvalue()


def _upload(service: ServiceProcess, name: str, content: bytes) -> str:
    answer = service.http.post("/files", files={"file": (name, content, "image/png")})
    assert answer.status_code == 201, answer.text
    return answer.json()["file_id"]


def _picture(service: ServiceProcess, file_id: JsonValue) -> Image.Image:
    return Image.open(io.BytesIO(service.http.get(f"/files/{file_id}").raise_for_status().content))


@pytest.mark.parametrize(
    ("direction", "size", "second_at"),
    [("horizontal", (40 + 5 + 30, 20), (50, 0)), ("vertical", (40, 20 + 5 + 10), (0, 30))],
)
def test_pictures_are_uploaded_stitched_and_fetched(
    service: ServiceProcess, direction: str, size: tuple[int, int], second_at: tuple[int, int]
) -> None:
    uploads: list[JsonValue] = [_upload(service, "red.png", _png((40, 20), "red")), _upload(service, "blue.png", _png((30, 10), "blue"))]
    params: dict[str, JsonValue] = {"images": uploads, "direction": direction, "spacing": 5}
    status, result = run_tool(service.http, "image_stitcher", params)
    assert (status, result.error) == (200, None)
    assert isinstance(result.result, dict)
    stitched = _picture(service, result.result["image"]).convert("RGB")
    assert stitched.size == (result.result["width"], result.result["height"]) == size
    assert stitched.getpixel((0, 0)) == (255, 0, 0)
    pixels = {stitched.getpixel((x, y)) for x in range(stitched.width) for y in range(stitched.height)}
    assert (0, 0, 255) in pixels
    assert stitched.getpixel(second_at) in {(0, 0, 255), (255, 255, 255)}


def test_a_stitched_picture_is_compressed(service: ServiceProcess) -> None:
    photo = Image.effect_noise((400, 300), 60).convert("RGB")
    content = io.BytesIO()
    photo.save(content, "JPEG", quality=98)
    params: dict[str, JsonValue] = {"image_path": _upload(service, "photo.jpg", content.getvalue()), "quality": 30, "max_width": 200}
    status, result = run_tool(service.http, "image_compress_api", params)
    assert (status, result.error) == (200, None)
    assert isinstance(result.result, dict)
    answer = service.http.get(f"/files/{result.result['image']}").raise_for_status()
    assert len(answer.content) == result.result["compressed_size"]
    assert len(answer.content) < len(content.getvalue())
    assert _picture(service, result.result["image"]).size == (200, 150)


@pytest.mark.parametrize(("text", "noise"), [(_CHINESE, "午饭"), (_ENGLISH, "cat")], ids=["Chinese", "English"])
def test_a_text_is_summarised_within_its_length(service: ServiceProcess, text: str, noise: str) -> None:
    length = len(text) // 2
    status, result = run_tool(service.http, "text_summarizer_api", {"text": text, "max_length": length})
    assert (status, result.error) == (200, None)
    assert isinstance(result.result, dict)
    summary = str(result.result["summary"])
    assert 0 < len(summary) <= length
    assert noise not in summary


def test_a_picture_that_is_none_is_the_callers_mistake(service: ServiceProcess) -> None:
    status, result = run_tool(service.http, "image_stitcher", {"images": [_upload(service, "no.png", b"not a picture")]})
    assert (status, result.error_type) == (422, ErrorType.VALIDATION_ERROR)
