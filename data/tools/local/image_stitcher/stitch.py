"""Joins pictures into one, in a row, a column or a grid."""

import math
import os
import struct
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct
from PIL import Image, ImageColor, ImageOps, TiffImagePlugin, UnidentifiedImageError, WebPImagePlugin  # noqa: F401 - readers

from server import InvalidInput

READABLE = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
MAX_PIXELS = 64_000_000  # of one picture and of the result: 256 MB in memory
MAX_SIDE = {"png": 60_000, "jpeg": 65_000, "webp": 16_383}
ORIENTATION = 0x0112
TURNED = range(5, 9)  # EXIF orientations that swap width and height

Image.MAX_IMAGE_PIXELS = MAX_PIXELS
warnings.simplefilter("error", Image.DecompressionBombWarning)

Colour = tuple[int, int, int, int]


class Params(Struct, forbid_unknown_fields=True):
    images: Annotated[list[str], Meta(min_length=1, max_length=64)]
    direction: Literal["horizontal", "vertical", "grid"] = "horizontal"
    columns: Annotated[int, Meta(ge=1, le=64)] | None = None
    spacing: Annotated[int, Meta(ge=0, le=1000)] = 0
    background: str = "white"
    format: Literal["png", "jpeg", "webp"] = "png"


class Size(NamedTuple):
    width: int
    height: int


class Layout(NamedTuple):
    """Where each picture goes, and the size of the whole."""

    places: list[tuple[int, int]]
    size: Size


def run(params: Params, folder: Path) -> dict[str, Any]:
    """Writes the stitched picture into `folder`."""
    colour = parse_colour(params.background, opaque=params.format == "jpeg")
    sizes = [shown_size(index, path) for index, path in enumerate(params.images)]
    layout = lay_out(sizes, columns_of(params), params.spacing)
    check_size(layout.size, params.format)
    canvas = Image.new("RGBA", layout.size, colour)
    for (index, path), place in zip(enumerate(params.images), layout.places, strict=True):
        canvas.alpha_composite(read(index, path), place)
    target = folder / f"stitched-{os.urandom(4).hex()}.{params.format}"
    opaque = params.format == "jpeg" or canvas.getextrema()[3] == (255, 255)
    (canvas.convert("RGB") if opaque else canvas).save(target, params.format, **save_options(params.format))
    return {"image": str(target), "width": canvas.width, "height": canvas.height}


def save_options(name: str) -> dict[str, Any]:
    return {"compress_level": 3} if name == "png" else {"quality": 92}


def columns_of(params: Params) -> int:
    match params.direction:
        case "horizontal":
            return len(params.images)
        case "vertical":
            return 1
        case "grid":
            return min(params.columns or math.ceil(math.sqrt(len(params.images))), len(params.images))


def lay_out(sizes: list[Size], columns: int, spacing: int) -> Layout:
    """Cells as wide as the widest of their column and as high as the highest of their row, pictures in the middle."""
    widths = [max(size.width for size in sizes[column::columns]) for column in range(columns)]
    heights = [max(size.height for size in sizes[start : start + columns]) for start in range(0, len(sizes), columns)]
    lefts = list(accumulate((width + spacing for width in widths), initial=0))
    tops = list(accumulate((height + spacing for height in heights), initial=0))
    places: list[tuple[int, int]] = []
    for index, size in enumerate(sizes):
        row, column = divmod(index, columns)
        places.append((lefts[column] + (widths[column] - size.width) // 2, tops[row] + (heights[row] - size.height) // 2))
    return Layout(places, Size(lefts[-1] - spacing, tops[-1] - spacing))


def check_size(size: Size, name: str) -> None:
    if size.width * size.height > MAX_PIXELS:
        raise InvalidInput(
            "images", f"the result would be {size.width}x{size.height} pixels; at most {MAX_PIXELS:,} are allowed, use smaller pictures"
        )
    if max(size) > MAX_SIDE[name]:
        raise InvalidInput(
            "format", f"the result would be {size.width}x{size.height} pixels; a side of a {name} picture has at most {MAX_SIDE[name]}"
        )


def parse_colour(text: str, *, opaque: bool) -> Colour:
    try:
        red, green, blue, alpha = ImageColor.getcolor(text, "RGBA")
    except ValueError as error:
        raise InvalidInput("background", f"{text!r} is neither a colour name nor #RRGGBB[AA]") from error
    return (red, green, blue, 255 if opaque else alpha)


def shown_size(index: int, path: str) -> Size:
    """The size after the EXIF orientation is applied. The EXIF data of a PNG come after its pixels, which are read too."""
    with opened(index, path) as picture, undamaged(index):
        width, height = picture.size
        return Size(height, width) if picture.getexif().get(ORIENTATION) in TURNED else Size(width, height)


def read(index: int, path: str) -> Image.Image:
    with opened(index, path) as picture, undamaged(index):
        upright = ImageOps.exif_transpose(picture)
    if upright.mode.startswith("I") or upright.mode == "F":
        upright = to_eight_bits(upright)
    return upright.convert("RGBA")


def to_eight_bits(picture: Image.Image) -> Image.Image:
    """Sixteen-bit greys scaled down; a plain conversion would clip them to white."""
    return picture.convert("F").point(lambda value: value * (1 / 256) + 0).convert("L")


@contextmanager
def undamaged(index: int) -> Generator[None]:
    try:
        yield
    except (OSError, SyntaxError, ValueError, struct.error) as error:
        raise InvalidInput(f"images[{index}]", f"the picture is damaged: {error}") from error


def opened(index: int, path: str) -> Image.Image:
    field = f"images[{index}]"
    try:
        return Image.open(path, formats=READABLE)
    except UnidentifiedImageError as error:
        raise InvalidInput(field, f"not a picture that can be read ({', '.join(READABLE)})") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise InvalidInput(field, f"the picture has more than {MAX_PIXELS:,} pixels") from error
    except (OSError, SyntaxError, ValueError) as error:
        raise InvalidInput(field, f"the file cannot be read: {error}") from error
