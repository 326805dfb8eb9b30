"""Reads what the service logs, as its own handler writes it, and tells the story of one booking from that alone."""

import contextlib
import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

from frontrow.shared.log_lines import LOG_LINES
from frontrow.web.observability import logs

Lines = Callable[[], list[dict[str, Any]]]


@contextlib.contextmanager
def log_lines() -> Iterator[Lines]:
    """Reads the lines that were written meanwhile."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.formatter())
    logger = logging.getLogger("frontrow")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield lambda: [_checked(json.loads(line)) for line in stream.getvalue().splitlines()]
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def _checked(line: dict[str, Any]) -> dict[str, Any]:
    """The line, which has the fields that the vocabulary promises."""
    if "action" in line:
        assert set(LOG_LINES[line["action"]].fields) <= line.keys(), line
    return line


def story_of(booking_id: str, lines: list[dict[str, Any]]) -> list[str]:
    """What became of a booking, as `grep` would find it: the actions in their order."""
    return [line["action"] for line in lines if "action" in line and booking_id in json.dumps(line)]
