"""Pictures that organisers upload: checked, turned upright, cropped, made small, written anew without their metadata.

The result is always a JPEG of 1200 by 630 or less, the shape of posters, under a bound of bytes. It is named by its
hash. A picture that claims to be huge is refused before it is unpacked.
"""

import hashlib
import io
import warnings
from typing import Final

import msgspec

from frontrow.core.errors import InvalidInput

MAX_UPLOAD_BYTES: Final = 10 * 1024 * 1024
MAX_PIXELS: Final = 50_000_000
MIN_SIDE: Final = 200
WIDTH, HEIGHT = 1200, 630
MAX_BYTES: Final = 400_000
QUALITIES: Final = (85, 75, 60, 45, 30)
FORMATS: Final = ("JPEG", "PNG", "WEBP")
MEDIA_TYPE: Final = "image/jpeg"


class Picture(msgspec.Struct, frozen=True):
    """A prepared picture. `hash` names its bytes."""

    hash: str
    body: bytes


def prepare_picture(raw: bytes) -> Picture:
    """The picture as pages show it; `InvalidInput` says what is wrong with the file. Not on the event loop."""
    from PIL import Image, ImageOps, UnidentifiedImageError  # not at the start of a server

    if len(raw) > MAX_UPLOAD_BYTES:
        raise InvalidInput(f"a picture has at most {MAX_UPLOAD_BYTES // 1024**2} MB", param="picture")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with Image.open(io.BytesIO(raw), formats=FORMATS) as opened:
                width, height = opened.size
                if width * height > MAX_PIXELS:
                    raise InvalidInput(f"a picture has at most {MAX_PIXELS // 1_000_000} megapixels", param="picture")
                if min(width, height) < MIN_SIDE:
                    raise InvalidInput(f"each side of a picture has {MIN_SIDE} pixels or more", param="picture")
                opened.draft("RGB", (2 * WIDTH, 2 * HEIGHT))  # a large JPEG is unpacked at a fraction of its size
                upright = ImageOps.exif_transpose(opened).convert("RGBA")
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError):
        raise InvalidInput(
            "this is no picture that can be read; send a JPEG, PNG or WebP file", param="picture"
        ) from None
    flat = Image.new("RGB", upright.size, "white")
    flat.paste(upright, mask=upright.getchannel("A"))
    fitted = ImageOps.fit(flat, _size(*flat.size), method=Image.Resampling.LANCZOS)
    for quality in QUALITIES:
        body = io.BytesIO()
        fitted.save(body, "JPEG", quality=quality, optimize=True, progressive=True)
        if body.tell() <= MAX_BYTES:
            break
    return Picture(hashlib.blake2b(body.getvalue(), digest_size=16).hexdigest(), body.getvalue())


def _size(width: int, height: int) -> tuple[int, int]:
    """The largest size of the right shape that needs no enlarging."""
    scale = min(1.0, width / WIDTH, height / HEIGHT)
    return max(1, round(WIDTH * scale)), max(1, round(HEIGHT * scale))
