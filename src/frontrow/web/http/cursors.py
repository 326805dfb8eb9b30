"""Cursors of lists: opaque texts that say where the next page begins."""

import base64
from typing import Any

from frontrow.core.errors import InvalidInput


def cursor_of(value: int | str | None) -> str | None:
    """An opaque cursor; None when there is no next page."""
    return None if value is None else base64.urlsafe_b64encode(str(value).encode()).decode()


def read_cursor(cursor: str) -> str:
    try:
        return base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except ValueError:
        raise InvalidInput("this cursor is not valid; start without one", param="cursor") from None


def read_number(cursor: str) -> int:
    """The number in a cursor; 0 without one."""
    text = read_cursor(cursor)
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInput("this cursor is not valid; start without one", param="cursor")
    return int(text)


def next_of(rows: list[Any], limit: int, last: Any) -> str | None:
    """The cursor of the next page; None after the last page."""
    return cursor_of(last) if len(rows) >= limit else None
