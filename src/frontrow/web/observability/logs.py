"""Logs: one JSON object per line on standard error, with the request id and without personal data.

The finished line is masked (`shared/log_masking.py`), whether its words came from a message, a field or a stack trace.
Lines of decisions (`core/log_line.py`) are most of the lines of a sale. They are rendered here, others by structlog.
"""

import json
import logging
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from frontrow.shared.log_masking import mask_line, needs_no_mask
from frontrow.web.http.request_ids import request_id


def _without_colours(logger: Any, name: str, line: Any) -> Any:
    line.pop("color_message", None)  # uvicorn's own, for terminals
    return line


def _with_request_id(logger: Any, name: str, line: Any) -> Any:
    current_id = request_id.get()
    if current_id and "request_id" not in line:
        line["request_id"] = current_id
    return line


def _rendered() -> Callable[[Any, str, Any], str]:
    import structlog

    render = structlog.processors.JSONRenderer(ensure_ascii=False)

    def finish(logger: Any, name: str, line: Any) -> str:
        return mask_line(str(render(logger, name, line)))

    return finish


STANDARD_FIELDS: Final = len(logging.LogRecord("", 0, "", 0, "", (), None).__dict__)
LONGEST_PLAIN_NUMBER: Final = 10**12  # a longer one may be the number of a card
_quoted = json.JSONEncoder(ensure_ascii=False).encode


@lru_cache(256)
def _message(text: str) -> str:
    return mask_line(_quoted(text))


class DecisionFormatter(logging.Formatter):
    """Renders the lines of decisions as `others` would, at a fourth of the cost. `others` renders all other lines."""

    def __init__(self, others: logging.Formatter) -> None:
        super().__init__()
        self._others = others
        self._second, self._second_text = -1, ""

    def format(self, record: logging.LogRecord) -> str:
        """The JSON line."""
        return self._decision(record) or self._others.format(record)

    def _decision(self, record: logging.LogRecord) -> str:
        """The line of a decision; "" for a record that has anything else in it."""
        extra, fields = record.__dict__, record.args
        if type(fields) is not dict or "action" not in extra or len(extra) != STANDARD_FIELDS + 1 + len(fields):
            return ""
        if record.exc_info or record.exc_text or record.stack_info:
            return ""
        message = _message(record.msg) if "%" not in record.msg else mask_line(_quoted(record.getMessage()))
        level = record.levelname.lower()
        parts = [f'"message": {message}, "level": "{level}", "logger": "{record.name}", "action": "{extra["action"]}"']
        current_id = request_id.get()
        if current_id and "request_id" not in fields:
            fields = {**fields, "request_id": current_id}
        for name, value in fields.items():
            if type(value) is str and needs_no_mask(value):
                text = f'"{value}"'
            elif isinstance(value, str):
                text = mask_line(_quoted(value))
            elif type(value) is int and -LONGEST_PLAIN_NUMBER < value < LONGEST_PLAIN_NUMBER:
                text = str(value)
            else:
                return ""
            parts.append(f'"{name}": {text}')
        return f'{{{", ".join(parts)}, "timestamp": "{self._time(time.time())}"}}'

    def _time(self, now_s: float) -> str:
        second = int(now_s)
        if second != self._second:
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second = second
        return f"{self._second_text}.{int((now_s - second) * 1_000_000):06d}Z"


def formatter() -> logging.Formatter:
    """Makes the JSON line of a log record."""
    return DecisionFormatter(_by_structlog())


def _by_structlog() -> logging.Formatter:
    import structlog

    processors: list[Any] = [
        structlog.processors.EventRenamer("message"),  # `event` is the event's id in our lines
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        _with_request_id,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    last = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, _without_colours, _rendered()]
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=processors, processors=last)


def set_up_logs(level: int = logging.INFO) -> None:
    """Every log line of this process (ours, uvicorn's, the libraries') in this form on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for chatty in ("httpx", "fontTools", "alembic"):  # a line per request, a dozen per PDF, one per migration
        logging.getLogger(chatty).setLevel(logging.WARNING)
