"""Pieces of self-contained HTML pages: their security headers, and markup and texts of our own package."""

import base64
import hashlib
from typing import Any

from markupsafe import Markup

from frontrow.web.http.messages import header_line


def N_(text: str) -> str:  # noqa: N802 - gettext's own name
    """Mark a text that is translated where it is shown."""
    return text


def page_head(policy: str) -> bytes:
    return (
        header_line("content-security-policy", policy)
        + b"x-content-type-options: nosniff\r\nreferrer-policy: no-referrer\r\n"
    )


def policy_hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def safe(text: str) -> Any:
    """Markup of our own package: it is not escaped."""
    return Markup(text)  # noqa: S704  # from our package, never from outside
