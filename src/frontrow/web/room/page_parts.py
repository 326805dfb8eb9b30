"""Pieces of the waiting-room page: its words, its small arithmetic, and how its files become one lean answer."""

import base64
import hashlib
import re
import string
from typing import Any

from markupsafe import Markup

from frontrow.core.cookies import cookie_names
from frontrow.waitingroom.model.window import Wait
from frontrow.web.endpoints.messages import header_line


def N_(text: str) -> str:  # noqa: N802 - gettext's own name
    """Marks a text that is translated where it is shown."""
    return text


WHY = {
    "paused": N_("The queue is paused. Nobody loses their place."),
    "queue_all": N_("Everyone waits for a moment. Nobody loses their place."),
    "capacity": N_("Fewer people are let in at the moment, so the wait is longer."),
    "rate": N_("People are let in more slowly at the moment, so the wait is longer."),
    "slower": N_("The queue is moving more slowly, so the wait is longer."),
    "closed": N_("The sale is closed at the moment."),
}
# Names of the page's script that mean nothing outside of it: not of properties, not used in template strings.
OWN_NAMES = (
    "seconds", "refresh", "become", "listen", "messageNo", "source", "saidAt", "stopped", "turned", "busy", "fails",
    "timer", "enter", "draw", "state", "vault", "bytes", "mode", "show", "poll", "tick", "turn", "uuid", "post",
    "prove", "proof", "bind", "skew", "from", "doc", "said", "WHY", "SLOW", "number", "lane", "ahead", "base",
    "wait", "put", "ask", "why", "key", "pair", "LOST", "seen", "ping", "head", "text", "path",
    "part", "kind",
)  # fmt: skip
# What a script means the same without; only outside of quotes.
SHORTER = (
    (r" *([{}()=,;:<>+*/&|?!]) *", r"\1"), (r" - ?", "-"), (r"(?<!\w)\((\w+)\)=>", r"\1=>"), (r";\n?}", "}"),
    (r"\bconst\b", "let"), (r"\btrue\b", "!0"), (r"\bfalse\b", "!1"),
)  # fmt: skip
HEADINGS = {
    "none": N_("Waiting room"),
    "waiting": N_("You’re in the queue"),
    "active": N_("You’re in"),
    "expired": N_("Your turn has passed"),
}


class PlainWords:
    """The page's words as they stand in the sources; the platform's pages translate them (`site.words`)."""

    language, direction = "en", "ltr"

    def __call__(self, text: str, **values: Any) -> str:
        return text.format(**values) if values else text

    def number(self, value: int) -> str:
        return f"{value:,}"


PLAIN_WORDS = PlainWords()


def wait_text(wait: Wait, _: Any = PLAIN_WORDS) -> str:
    """An honest, coarse estimate: a band of minutes."""
    if wait.low_s is None or wait.high_s is None:
        return str(_("Paused") if wait.reason in ("paused", "queue_all") else _("not known yet"))
    low, high = wait.low_s // 60, -(-wait.high_s // 60)
    if high <= 1:
        return str(_("about a minute"))
    if low < 1:
        return str(_("up to {n} min", n=high))
    if low == high:
        return str(_("about {n} min", n=high))
    return str(_("{low}–{high} min", low=_.number(low), high=_.number(high)))


def progress(from_hi: int, hi: int, number: int) -> int:
    """How much of the way is done, of a thousand."""
    return max(10, min(1000, 1000 * (hi - from_hi) // max(1, number - from_hi))) if number else 0


def from_cookies(event: str) -> tuple[str, str]:
    """The names of the cookie that keeps where the window was when this browser joined."""
    return cookie_names("from", event)


def place_cookies(event: str) -> tuple[str, str]:
    """The names of the cookie that keeps this browser's place."""
    return cookie_names("place", event)


def page_head(policy: str) -> bytes:
    return (
        header_line("content-security-policy", policy)
        + b"x-content-type-options: nosniff\r\nreferrer-policy: no-referrer\r\n"
    )


def lean(text: str) -> str:
    """Without indentation and comment lines: the page has 14 KB for everything."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("// "))


def short_names(style: str) -> str:
    """The style with its own properties (`--brand`, …) called `--a`, `--b`, …: a few hundred bytes of the 14 KB."""
    names = sorted(set(re.findall(r"--[a-z][a-z0-9-]*", style)), key=len, reverse=True)
    for number, name in enumerate(names):
        style = re.sub(rf"{name}(?![a-z0-9-])", f"--{chr(65 + number)}", style)
    return style


def lean_script(text: str) -> str:
    """The same, and without the spaces around signs outside of quotes."""
    parts = re.split(r"""("(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)""", lean(text))
    for pattern, short in SHORTER:
        parts[::2] = [re.sub(pattern, short, part) for part in parts[::2]]
    for short, name in zip(string.ascii_letters, OWN_NAMES, strict=False):
        own = re.compile(rf"(?<![.\w$]){name}(?![\w:])")
        parts[::2] = [own.sub(f"_{short}", part) for part in parts[::2]]
    return re.sub(r"([;{},])\n", r"\1", "".join(parts))


def policy_hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def safe(text: str) -> Any:
    """Our own style and script, not to be escaped."""
    return Markup(text)  # noqa: S704  # from our package, never from outside
