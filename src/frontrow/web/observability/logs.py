"""Logs: one JSON object per line on standard error, with the request id and without personal data.

Whatever looks like an e-mail address, a card number, a token or an IP address is removed from the finished line,
whether it came from a message, a field or a stack trace. This is the last safety net: nothing that needs it should be
logged in the first place.
"""

import ipaddress
import logging
import re
from collections.abc import Callable
from typing import Any, Final

from frontrow.web.http.request_ids import request_id

_TOKENS: Final = re.compile(r"\b(?:fr[a-z]_|eyJ|pm_|pi_|sk_|rk_|whsec_|cs_)[A-Za-z0-9_.=-]{6,}")
_EMAIL: Final = re.compile(r"[^\s\"'<>@\\,;:()]+@[^\s\"'<>@\\,;:()]+\.[A-Za-z]{2,}")
_DIGITS: Final = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.])")
_IPV4: Final = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_IPV6: Final = re.compile(r"(?<![\w:.])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])")
_PASSWORD: Final = re.compile(r"(\w+://[^:/@\s\"]*):[^@/\s\"]+@")


def scrubbed(line: str) -> str:
    """The line without personal data."""
    if "@" in line:  # both begin anywhere, so looking for them takes half the time of a line
        line = _EMAIL.sub("[email]", _PASSWORD.sub(r"\1:…@", line))
    line = _TOKENS.sub("[token]", line)
    line = _DIGITS.sub(_card, line)
    line = _IPV4.sub("[ip]", line)
    return _IPV6.sub(_address, line)


def _card(found: "re.Match[str]") -> str:
    """Removed when the digits are a card number (Luhn check); times in microseconds stay."""
    digits = [int(char) for char in found[0] if char.isdigit()]
    total = sum(digits[-1::-2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return "[card]" if total % 10 == 0 else found[0]


def _address(found: "re.Match[str]") -> str:
    """Removed when it is an address; a time of day is not."""
    try:
        ipaddress.IPv6Address(found[0])
    except ValueError:
        return found[0]
    return "[ip]"


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
        return scrubbed(str(render(logger, name, line)))

    return finish


def formatter() -> logging.Formatter:
    """Makes the JSON line of a log record."""
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
