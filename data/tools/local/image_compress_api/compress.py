"""Makes a picture file smaller, and says honestly when it cannot."""

import os
import shutil
import warnings
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from PIL import Image, ImageOps, TiffImagePlugin, UnidentifiedImageError, WebPImagePlugin  # noqa: F401 - readers

from server import InvalidInput

READABLE = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
KEPT = {"PNG": "png", "JPEG": "jpeg", "MPO": "jpeg", "WEBP": "webp"}
SUFFIX = {"png": ".png", "jpeg": ".jpg", "webp": ".webp"}
MODES = {"png": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"), "jpeg": ("L", "RGB", "CMYK"), "webp": ("RGB", "RGBA")}
MAX_PIXELS = 64_000_000  # 256 MB in memory
MAX_SIDE = {"png": 60_000, "jpeg": 65_000, "webp": 16_383}

Image.MAX_IMAGE_PIXELS = MAX_PIXELS
warnings.simplefilter("error", Image.DecompressionBombWarning)

Side = Annotated[int, Meta(ge=1, le=60_000)]
Format = Literal["jpeg", "webp", "png"]


class Params(Struct, forbid_unknown_fields=True):
    image_path: Annotated[str, Meta(min_length=1)]
    quality: Annotated[int, Meta(ge=1, le=100)] = 85
    max_width: Side | None = None
    max_height: Side | None = None
    format: Literal["keep", Format] = "keep"


def run(params: Params, folder: Path) -> dict[str, Any]:
    """Writes the compressed picture into `folder`, or the original bytes if recompression does not make them fewer."""
    source = Path(params.image_path)
    with opened(source) as picture:
        kept = KEPT.get(picture.format or "")
        target_format = chosen_format(params, picture, kept)
        try:
            upright = ImageOps.exif_transpose(picture)
        except (OSError, SyntaxError, ValueError) as error:
            raise InvalidInput("image_path", f"the picture is damaged: {error}") from error
    small = shrunk(upright, params)
    content = encoded(small, target_format, params.quality)
    original = source.stat().st_size
    recompressed = len(content) < original or target_format != kept or small.size != upright.size
    target = folder / f"{source.stem[:80]}-{os.urandom(4).hex()}{SUFFIX[target_format]}"
    if recompressed:
        target.write_bytes(content)
    else:
        shutil.copyfile(source, target)
    size = target.stat().st_size
    return {"image": str(target), "compressed_size": size, "compression_ratio": round(size / original, 4), "recompressed": recompressed}


def chosen_format(params: Params, picture: Image.Image, kept: str | None) -> Format:
    if picture.format != "MPO" and getattr(picture, "n_frames", 1) > 1:
        raise InvalidInput("image_path", "animated and multi-page pictures would lose all but their first frame; they are not compressed")
    target = kept if params.format == "keep" else params.format
    if target is None:
        raise InvalidInput("format", f"{picture.format} pictures cannot be kept in their format; choose jpeg, webp or png")
    return target


def shrunk(picture: Image.Image, params: Params) -> Image.Image:
    """Fits the bounds, in proportion; never enlarges."""
    factor = min(1.0, (params.max_width or picture.width) / picture.width, (params.max_height or picture.height) / picture.height)
    if factor == 1.0:
        return picture
    smooth = picture.convert("RGBA" if picture.has_transparency_data else "RGB") if picture.mode in ("1", "P", "PA") else picture
    return smooth.resize((max(1, int(picture.width * factor)), max(1, int(picture.height * factor))), Image.Resampling.LANCZOS)


def encoded(picture: Image.Image, target: Format, quality: int) -> bytes:
    if max(picture.size) > MAX_SIDE[target]:
        raise InvalidInput("format", f"a side of a {target} picture has at most {MAX_SIDE[target]} pixels; set max_width or max_height")
    ready = in_mode_of(picture, target)
    options: dict[str, Any] = {"icc_profile": picture.info.get("icc_profile") if ready.mode == picture.mode else None}
    match target:
        case "png":
            options |= {"optimize": True}
        case "jpeg":
            options |= {"quality": quality, "optimize": True, "progressive": True}
        case "webp":
            options |= {"quality": quality, "method": 5}
    buffer = BytesIO()
    ready.save(buffer, target, **options)
    return buffer.getvalue()


def in_mode_of(picture: Image.Image, target: Format) -> Image.Image:
    """The picture in a mode that the format can hold; transparency becomes white where it cannot be kept."""
    if picture.mode in MODES[target] and not (target == "jpeg" and picture.has_transparency_data):
        return picture
    if picture.mode.startswith("I") or picture.mode == "F":
        return picture.convert("F").point(lambda value: value * (1 / 256) + 0).convert("L" if target != "webp" else "RGB")
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    clear = picture.convert("RGBA")
    if target != "jpeg":
        return clear
    return Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")


def opened(path: Path) -> Image.Image:
    try:
        return Image.open(path, formats=READABLE)
    except UnidentifiedImageError as error:
        raise InvalidInput("image_path", f"not a picture that can be read ({', '.join(READABLE)})") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise InvalidInput("image_path", f"the picture has more than {MAX_PIXELS:,} pixels") from error
    except (OSError, SyntaxError, ValueError) as error:
        raise InvalidInput("image_path", f"the file cannot be read: {error}") from error
