from pathlib import Path
from typing import Any

import pytest
from msgspec import ValidationError, convert
from PIL import Image

import compress
from server import InvalidInput


def noisy(path: Path, **options: Any) -> Path:
    noise = Image.effect_noise((200, 100), 60)
    Image.merge("RGB", (noise, noise.rotate(180), noise)).save(path, **options)
    return path


def compressed(folder: Path, path: Path, **params: Any) -> tuple[dict[str, Any], Image.Image]:
    result = compress.run(convert({"image_path": str(path), **params}, compress.Params), folder)
    written = Path(result["image"])
    assert written.parent == folder
    assert result["compressed_size"] == written.stat().st_size
    assert result["compression_ratio"] == round(result["compressed_size"] / path.stat().st_size, 4)
    with Image.open(written) as image:
        image.load()
    return result, image


@pytest.mark.parametrize(("name", "kind"), [("a.jpg", "JPEG"), ("a.webp", "WEBP")])
def test_a_lower_quality_makes_the_file_smaller_in_its_own_format(tmp_path: Path, name: str, kind: str) -> None:
    result, image = compressed(tmp_path, noisy(tmp_path / name, quality=98), quality=30)
    assert result["recompressed"] is True
    assert result["compression_ratio"] < 0.7
    assert image.format == kind


def test_what_would_grow_keeps_its_original_bytes(tmp_path: Path) -> None:
    path = noisy(tmp_path / "small.jpg", quality=10)
    result, _ = compressed(tmp_path, path, quality=100)
    assert (result["recompressed"], result["compression_ratio"]) == (False, 1.0)
    assert Path(result["image"]).read_bytes() == path.read_bytes()


def test_a_png_is_compressed_without_loss(tmp_path: Path) -> None:
    path = noisy(tmp_path / "a.png", compress_level=0)
    result, image = compressed(tmp_path, path, quality=1)
    assert result["recompressed"] is True
    with Image.open(path) as original:
        assert original.tobytes() == image.tobytes()


def test_bounds_shrink_in_proportion_and_never_enlarge(tmp_path: Path) -> None:
    path = noisy(tmp_path / "a.jpg")
    assert compressed(tmp_path, path, max_width=50)[1].size == (50, 25)
    assert compressed(tmp_path, path, max_width=150, max_height=20)[1].size == (40, 20)
    assert compressed(tmp_path, path, max_width=5000, quality=20)[1].size == (200, 100)


def test_a_format_asked_for_is_honoured_and_its_growth_is_told(tmp_path: Path) -> None:
    result, image = compressed(tmp_path, noisy(tmp_path / "a.jpg", quality=10), format="png")
    assert image.format == "PNG"
    assert result["compression_ratio"] > 1


def test_transparency_becomes_white_in_a_jpeg_and_stays_in_a_webp(tmp_path: Path) -> None:
    path = tmp_path / "clear.png"
    Image.new("RGBA", (8, 8), (255, 0, 0, 0)).save(path)
    assert compressed(tmp_path, path, format="jpeg")[1].getpixel((4, 4)) == (255, 255, 255)
    assert compressed(tmp_path, path, format="webp")[1].getpixel((4, 4))[3] == 0


def test_the_exif_orientation_is_applied(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    assert compressed(tmp_path, noisy(tmp_path / "a.jpg", quality=98, exif=exif), quality=30)[1].size == (100, 200)


@pytest.mark.parametrize(
    ("mode", "colour", "kind"),
    [
        (mode, colour, kind)
        for mode, colour in (("1", 1), ("L", 9), ("LA", (9, 9)), ("P", 3), ("I;16", 40_000))
        for kind in ("jpeg", "webp", "png")
    ],
)
def test_every_mode_fits_every_format(tmp_path: Path, mode: str, colour: Any, kind: str) -> None:
    path = tmp_path / "a.png"
    Image.new(mode, (20, 20), colour).save(path)
    assert compressed(tmp_path, path, format=kind)[1].size == (20, 20)
    assert compressed(tmp_path, path, format=kind, max_width=10)[1].size == (10, 10)


def refused(folder: Path, path: Path, **params: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        compress.run(convert({"image_path": str(path), **params}, compress.Params), folder)
    return caught.value.field


def test_bad_input_names_its_field(tmp_path: Path) -> None:
    text, animated, bomb, bitmap, broken = (tmp_path / name for name in ("t.png", "a.gif", "bomb.png", "b.bmp", "broken.jpg"))
    text.write_text("not a picture")
    Image.new("L", (9, 9)).save(animated, save_all=True, append_images=[Image.new("L", (9, 9), 200)])
    Image.new("1", (9000, 9000)).save(bomb)
    Image.new("L", (9, 9)).save(bitmap)
    broken.write_bytes(noisy(tmp_path / "whole.jpg").read_bytes()[:900])
    assert [refused(tmp_path, path) for path in (text, animated, bomb, broken)] == ["image_path"] * 4
    assert refused(tmp_path, tmp_path / "none.png") == "image_path"
    assert refused(tmp_path, bitmap) == "format"


@pytest.mark.parametrize("params", [{}, {"image_path": "a", "quality": 0}, {"image_path": "a", "quality": True}, {"image_path": 3}])
def test_params_outside_the_schema_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        convert(params, compress.Params)
