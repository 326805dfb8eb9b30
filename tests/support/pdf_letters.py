"""What a PDF says, as a reader that copies its text sees it."""

import re
import zlib


def letters_of(pdf: bytes) -> str:
    """Every letter that the PDF's embedded fonts stand for (their ToUnicode tables)."""
    letters = ""
    for raw in re.findall(rb"stream\n(.*?)\nendstream", pdf, re.DOTALL):
        try:
            text = zlib.decompress(raw).decode("latin-1")
        except zlib.error:
            text = raw.decode("latin-1")
        if "begincmap" in text:
            pairs = re.findall(r"<[0-9A-Fa-f]{4}> <([0-9A-Fa-f]+)>", text)
            letters += "".join(bytes.fromhex(pair).decode("utf-16-be") for pair in pairs)
    return letters


def core_texts(pdf: bytes) -> list[str]:
    """The texts that are drawn with the fonts every reader has, in their order."""
    texts: list[str] = []
    for raw in re.findall(rb"stream\n(.*?)\nendstream", pdf, re.DOTALL):
        try:
            page = zlib.decompress(raw).decode("latin-1")
        except zlib.error:
            continue
        texts += re.findall(r"\((.*?)\) Tj", page)
    return texts
