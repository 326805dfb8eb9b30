"""Labels of sections, rows and seats. They have letters, digits and dots only, so ids made of them are unambiguous.

People read the names that the organiser gave to sections and rows instead, on every page and ticket (`seat_names.py`).
"""

import re

from frontrow.core.errors import InvalidInput

MAX_LABEL_CHARS = 32
AREA_ROW = "GA"  # the one row of an area: general admission, a count and no seats
_NOT_LABEL = re.compile(r"[\W_]+")


def label_from(text: str) -> str:
    """The nearest label to a free text: each run of other characters becomes one dot."""
    return _NOT_LABEL.sub(".", text).strip(".")[:MAX_LABEL_CHARS]


def check_label(text: str, what: str) -> str:
    """`text` if it is a label; otherwise an error that suggests one."""
    if not text or len(text) > MAX_LABEL_CHARS or not text.replace(".", "a").isalnum():
        hint = f"; use {label_from(text)!r}" if label_from(text) else ""
        raise InvalidInput(
            f"{what} {text[:60]!r} must be 1 to {MAX_LABEL_CHARS} letters, digits or dots{hint}", param=what
        )
    return text
