"""Pictures that organisers upload: limits of a file, prepared ones as values, how long one is kept that nothing shows.

Pure: `boxoffice/events/pictures.py` reads the file and makes it small.
"""

from typing import Final

import msgspec

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput

MAX_UPLOAD_BYTES: Final = 10 * 1024 * 1024
MAX_UPLOAD_CHARS: Final = -(-MAX_UPLOAD_BYTES // 3) * 4  # in base64
MAX_PIXELS: Final = 50_000_000
MIN_SIDE: Final = 200
MIN_LOGO_SIDE: Final = 16
FORMATS: Final = ("JPEG", "PNG", "WEBP")
KEEP_UNUSED_US: Final = 7 * 86_400 * US_PER_S  # caches and shared links still ask for it


class PictureTooLarge(InvalidInput):
    """The file has too many bytes, or too many pixels once it is unpacked."""

    code = "picture_too_large"
    http_status = 413


class Picture(msgspec.Struct, frozen=True):
    """A prepared picture. `hash` names its bytes."""

    hash: str
    body: bytes
    width: int
    height: int
