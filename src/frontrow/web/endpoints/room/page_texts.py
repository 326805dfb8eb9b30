"""The texts of the waiting-room page: its headings, its reasons and its estimates."""

from typing import Any

from frontrow.waitingroom.model.wait_estimate import Wait
from frontrow.web.http.html import N_

WHY = {
    "paused": N_("The queue is paused. Nobody loses their place."),
    "queue_all": N_("Everyone waits for a moment. Nobody loses their place."),
    "capacity": N_("Fewer people are let in at the moment, so the wait is longer."),
    "rate": N_("People are let in more slowly at the moment, so the wait is longer."),
    "slower": N_("The queue is moving more slowly, so the wait is longer."),
    "closed": N_("The sale is closed at the moment."),
}
HEADINGS = {
    "none": N_("Waiting room"),
    "waiting": N_("You’re in the queue"),
    "active": N_("You’re in"),
    "expired": N_("Your turn has passed"),
}


class PlainWords:
    """The page's texts as written in the sources; the platform's pages translate them (`site.languages`)."""

    language, tag, direction = "en", "en-GB", "ltr"

    def __call__(self, text: str, **values: Any) -> str:
        return text.format(**values) if values else text

    def number(self, value: int) -> str:
        return f"{value:,}"


PLAIN_WORDS = PlainWords()


def wait_text(wait: Wait, _: Any = PLAIN_WORDS) -> str:
    """A coarse estimate of the wait: a range of minutes."""
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
    """How much of the wait is over, in thousandths."""
    return max(10, min(1000, 1000 * (hi - from_hi) // max(1, number - from_hi))) if number else 0
