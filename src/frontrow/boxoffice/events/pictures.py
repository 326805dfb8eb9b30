"""Pictures that organisers upload: checked, turned upright, made small, written anew without their metadata.

An event's picture becomes a JPEG of 1200 by 630 or less, the shape of posters; a logo becomes a PNG. Both stay under a
bound of bytes and are named by their hash. A picture that claims to be huge is refused before it is unpacked. None of
this runs on the event loop: `prepare_picture` and `prepare_logo` are for `HeavyWork`. What an upload may be, in bytes,
pixels and formats, is in `model/pictures.py`.
"""

import base64
import binascii
import hashlib
import io
import warnings
from typing import TYPE_CHECKING, Final

from frontrow.boxoffice.events.model.pictures import (
    FORMATS,
    MAX_PIXELS,
    MAX_UPLOAD_BYTES,
    MAX_UPLOAD_CHARS,
    MIN_LOGO_SIDE,
    MIN_SIDE,
    Picture,
    PictureTooLarge,
)
from frontrow.core.errors import InvalidInput

if TYPE_CHECKING:
    from PIL import Image

WIDTH, HEIGHT = 1200, 630
MAX_BYTES: Final = 400_000
QUALITIES: Final = (85, 75, 60, 45, 30)
PREPARE_WITHIN_S: Final = 20.0

LOGO_WIDTH, LOGO_HEIGHT = 480, 128
MAX_LOGO_BYTES: Final = 60_000
LOGO_TRIES: Final = 4  # each half as large as the one before
PLATE_MARGIN_PERCENT: Final = 12  # around a transparent logo, of its height
LIGHT_PLATE, DARK_PLATE = "#ffffff", "#161b22"
SMALL_WIDTH, SMALL_HEIGHT, SMALL_QUALITY = 600, 315, 78  # in mails and on tickets
LIGHT_LOGO: Final = 170  # the mean brightness, of 255, from which on a logo needs a dark plate


def prepare_picture(encoded: str | bytes) -> Picture:
    """The picture (in base64) as pages show it; `InvalidInput` says what is wrong with the file."""
    from PIL import Image, ImageOps  # not at the start of a server

    upright = _read(encoded, "picture", MIN_SIDE, (2 * WIDTH, 2 * HEIGHT))
    flat = Image.new("RGB", upright.size, LIGHT_PLATE)
    flat.paste(upright, mask=upright.getchannel("A"))
    fitted = ImageOps.fit(flat, _size(*flat.size), method=Image.Resampling.LANCZOS)
    for quality in QUALITIES:
        body = io.BytesIO()
        fitted.save(body, "JPEG", quality=quality, optimize=True, progressive=True)
        if body.tell() <= MAX_BYTES:
            break
    return _named(body.getvalue(), fitted.size)


def prepare_logo(encoded: str | bytes) -> Picture:
    """The logo (in base64) as pages, mails and tickets show it: whole, on a plate if it is transparent."""
    from PIL import Image

    logo = _on_plate(_cut_out(_read(encoded, "logo", MIN_LOGO_SIDE, (4 * LOGO_WIDTH, 4 * LOGO_HEIGHT))))
    for halvings in range(LOGO_TRIES):
        small = logo.copy()
        small.thumbnail((LOGO_WIDTH >> halvings, LOGO_HEIGHT >> halvings), Image.Resampling.LANCZOS)
        for shown in (small, small.quantize(256)):
            body = io.BytesIO()
            shown.save(body, "PNG", optimize=True)
            if body.tell() <= MAX_LOGO_BYTES:
                return _named(body.getvalue(), small.size)
    raise PictureTooLarge("this logo cannot be made small enough; send a simpler one", param="logo")


def media_type_of(body: bytes) -> str:
    """Of a prepared picture."""
    return "image/png" if body.startswith(b"\x89PNG") else "image/jpeg"


def small_picture(body: bytes) -> bytes:
    """A prepared picture as mails and tickets show it: a JPEG of 600 by 315 or less."""
    from PIL import Image

    with Image.open(io.BytesIO(body)) as opened:
        small = opened.convert("RGB")
    small.thumbnail((SMALL_WIDTH, SMALL_HEIGHT), Image.Resampling.LANCZOS)
    made = io.BytesIO()
    small.save(made, "JPEG", quality=SMALL_QUALITY, optimize=True)
    return made.getvalue()


def _read(encoded: str | bytes, param: str, min_side: int, enough: tuple[int, int]) -> "Image.Image":
    """The picture in a file, upright, not much larger than `enough`, as RGBA."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    if len(encoded) > MAX_UPLOAD_CHARS:
        raise PictureTooLarge(f"a {param} has at most {MAX_UPLOAD_BYTES // 1024**2} MB", param=param)
    try:
        raw = base64.b64decode(encoded, validate=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with Image.open(io.BytesIO(raw), formats=FORMATS) as opened:
                width, height = opened.size
                if width * height > MAX_PIXELS:
                    raise PictureTooLarge(f"a {param} has at most {MAX_PIXELS // 1_000_000} megapixels", param=param)
                if min(width, height) < min_side:
                    raise InvalidInput(f"each side of a {param} has {min_side} pixels or more", param=param)
                opened.draft("RGB", enough)  # a large JPEG is unpacked at a fraction of its size
                times = max(1, min(opened.width // enough[0], opened.height // enough[1]))
                smaller = opened.reduce(times) if times > 1 and opened.mode in ("L", "RGB", "RGBA") else opened
                return ImageOps.exif_transpose(smaller).convert("RGBA")
    except Image.DecompressionBombError:
        raise PictureTooLarge(f"a {param} has at most {MAX_PIXELS // 1_000_000} megapixels", param=param) from None
    except InvalidInput:
        raise
    except (binascii.Error, UnidentifiedImageError, OSError, ValueError, SyntaxError, Warning):
        raise InvalidInput(f"this is no {param} that can be read; send a JPEG, PNG or WebP file", param=param) from None


def _cut_out(logo: "Image.Image") -> "Image.Image":
    """The logo without what is transparent around it."""
    box = logo.getchannel("A").getbbox()
    if box is None:
        raise InvalidInput("this logo is transparent all over", param="logo")
    return logo.crop(box)


def _on_plate(logo: "Image.Image") -> "Image.Image":
    """The logo without transparency. Its plate is white, or dark for a light logo, so it can be seen everywhere."""
    from PIL import Image, ImageStat

    opacity = logo.getchannel("A")
    if opacity.getextrema()[0] == 255:
        return logo.convert("RGB")
    brightness = ImageStat.Stat(logo.convert("L"), opacity).mean[0]
    margin = max(1, logo.height * PLATE_MARGIN_PERCENT // 100)
    size = (logo.width + 2 * margin, logo.height + 2 * margin)
    plate = Image.new("RGB", size, DARK_PLATE if brightness >= LIGHT_LOGO else LIGHT_PLATE)
    plate.paste(logo, (margin, margin), opacity)
    return plate


def _named(body: bytes, size: tuple[int, int]) -> Picture:
    return Picture(hashlib.blake2b(body, digest_size=16).hexdigest(), body, *size)


def _size(width: int, height: int) -> tuple[int, int]:
    """The largest size of the right shape that needs no enlarging."""
    scale = min(1.0, width / WIDTH, height / HEIGHT)
    return max(1, round(WIDTH * scale)), max(1, round(HEIGHT * scale))
