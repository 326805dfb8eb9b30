"""Pictures for tests: of any kind and size, logos, and files that claim to be huge."""

import base64
import io
import struct
import zlib

from PIL import Image, ImageDraw


def a_picture(kind: str = "PNG", size: tuple[int, int] = (900, 700), mode: str = "RGB", **options: object) -> bytes:
    body = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert(mode).save(body, kind, **options)  # type: ignore[arg-type]
    return body.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it has this many pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")


def a_poster(colour: str) -> str:
    """Grey, with a large disc in this colour, as it is uploaded."""
    image = Image.new("RGB", (1200, 630), "#555555")
    ImageDraw.Draw(image).ellipse((300, 15, 900, 615), fill=colour)
    body = io.BytesIO()
    image.save(body, "PNG")
    return base64.b64encode(body.getvalue()).decode()


def a_logo(colour: str = "#102040") -> str:
    """An ellipse on nothing."""
    image = Image.new("RGBA", (900, 300))
    ImageDraw.Draw(image).ellipse((20, 20, 880, 280), fill=colour)
    body = io.BytesIO()
    image.save(body, "PNG")
    return base64.b64encode(body.getvalue()).decode()
