from pathlib import Path
from typing import Any

import pytest
from msgspec import ValidationError, convert
from PIL import Image

import stitch
from server import InvalidInput

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 128, 0), (0, 0, 255), (255, 255, 255)


def picture(folder: Path, name: str, size: tuple[int, int], colour: Any, mode: str = "RGB", **options: Any) -> str:
    path = folder / name
    Image.new(mode, size, colour).save(path, **options)
    return str(path)


def stitched(folder: Path, **params: Any) -> tuple[dict[str, Any], Image.Image]:
    result = stitch.run(convert(params, stitch.Params), folder)
    with Image.open(result["image"]) as image:
        image.load()
    assert (result["width"], result["height"]) == image.size
    return result, image


@pytest.fixture
def three(tmp_path: Path) -> list[str]:
    return [
        picture(tmp_path, "r.png", (40, 20), RED),
        picture(tmp_path, "g.png", (20, 40), GREEN),
        picture(tmp_path, "b.jpg", (10, 10), BLUE),
    ]


def test_a_row_is_as_wide_as_all_and_centres_the_lower_ones(tmp_path: Path, three: list[str]) -> None:
    _, image = stitched(tmp_path, images=three[:2], spacing=5)
    assert image.size == (65, 40)
    assert [image.getpixel(at) for at in ((0, 9), (0, 10), (39, 29), (39, 30), (42, 20), (45, 0))] == [WHITE, RED, RED, WHITE, WHITE, GREEN]


def test_a_column_centres_the_narrow_ones(tmp_path: Path, three: list[str]) -> None:
    _, image = stitched(tmp_path, images=three[:2], direction="vertical", background="#0000FF")
    assert image.size == (40, 60)
    assert [image.getpixel(at) for at in ((0, 0), (9, 30), (10, 30), (30, 30))] == [RED, BLUE, GREEN, BLUE]


def test_a_grid_gives_each_column_and_row_its_size(tmp_path: Path, three: list[str]) -> None:
    _, image = stitched(tmp_path, images=three, direction="grid", columns=2, spacing=2)
    assert image.size == (40 + 2 + 20, 40 + 2 + 10)


def test_a_grid_without_columns_is_about_square(tmp_path: Path, three: list[str]) -> None:
    _, image = stitched(tmp_path, images=[three[2]] * 9, direction="grid")
    assert image.size == (30, 30)


def test_the_exif_orientation_is_applied(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # what is stored at the left is shown at the top
    stored = Image.new("RGB", (40, 20), BLUE)
    stored.paste(RED, (0, 0, 20, 20))
    stored.save(tmp_path / "turned.png", exif=exif)
    _, image = stitched(tmp_path, images=[str(tmp_path / "turned.png")])
    assert image.size == (20, 40)
    assert [image.getpixel(at) for at in ((15, 5), (5, 35))] == [RED, BLUE]


def test_transparency_shows_the_background_or_stays(tmp_path: Path) -> None:
    path = picture(tmp_path, "clear.png", (4, 4), (255, 0, 0, 0), "RGBA")
    _, image = stitched(tmp_path, images=[path], background="#00008080")
    assert (image.mode, image.getpixel((0, 0))) == ("RGBA", (0, 0, 128, 128))
    _, image = stitched(tmp_path, images=[path], background="blue")
    assert (image.mode, image.getpixel((0, 0))) == ("RGB", BLUE)


def test_a_sixteen_bit_grey_keeps_its_shade(tmp_path: Path) -> None:
    _, image = stitched(tmp_path, images=[picture(tmp_path, "deep.png", (4, 4), 32768, "I;16")])
    assert image.getpixel((0, 0)) == (128, 128, 128)


@pytest.mark.parametrize("name", ["png", "jpeg", "webp"])
def test_the_result_is_in_the_format_asked_for(tmp_path: Path, three: list[str], name: str) -> None:
    result, image = stitched(tmp_path, images=three, format=name)
    assert image.format == name.upper()
    assert Path(result["image"]).parent == tmp_path


def refused(folder: Path, **params: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        stitch.run(convert(params, stitch.Params), folder)
    return caught.value.field


def test_bad_input_names_its_field(tmp_path: Path, three: list[str]) -> None:
    text, broken = tmp_path / "text.png", tmp_path / "broken.jpg"
    text.write_text("not a picture")
    broken.write_bytes(Path(three[2]).read_bytes()[:300])
    assert refused(tmp_path, images=[three[0], str(text)]) == "images[1]"
    assert refused(tmp_path, images=[three[0], str(broken)]) == "images[1]"
    assert refused(tmp_path, images=[str(tmp_path / "none.png")]) == "images[0]"
    assert refused(tmp_path, images=three, background="no-such-colour") == "background"


def test_bombs_and_huge_results_are_refused_from_the_headers(tmp_path: Path) -> None:
    bomb = picture(tmp_path, "bomb.png", (9000, 9000), 0, "1")
    large = picture(tmp_path, "large.png", (7000, 7000), 0, "1")
    wide = picture(tmp_path, "wide.png", (10_000, 1), 0, "1")
    assert refused(tmp_path, images=[bomb]) == "images[0]"
    assert refused(tmp_path, images=[large, large]) == "images"
    assert refused(tmp_path, images=[wide, wide], format="webp") == "format"


@pytest.mark.parametrize(
    "params",
    [{}, {"images": []}, {"images": ["a"], "spacing": 1001}, {"images": ["a"], "direction": "up"}, {"images": ["a"], "unknown": 1}],
)
def test_params_outside_the_schema_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        convert(params, stitch.Params)


def test_a_picture_whose_pixels_are_damaged_is_named(tmp_path: Path) -> None:
    path = Path(picture(tmp_path, "r.png", (40, 20), RED))
    content = path.read_bytes()
    at = content.index(b"IDAT") + 8
    path.write_bytes(content[:at] + b"\0" * 8 + content[at + 8 :])
    with pytest.raises(InvalidInput) as raised:
        stitched(tmp_path, images=[str(path)])
    assert raised.value.field == "images[0]"
