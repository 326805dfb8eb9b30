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
    "lost": N_("You’re in"),
}
LOST_AT_SHOP = N_("The shop did not remember you. Allow its cookies in this browser, then enter again.")

REFUSED = N_("That did not work. Please try again.")
# code of a refusal in the room -> what to tell
REFUSALS = {
    "place_invalid": N_("Your place could not be read. Please join again."),
    "place_foreign": N_("This place belongs to another sale. Please join again here."),
    "place_expired": N_("Your turn was not used in time. You can join again at the end of the queue."),
    "not_your_turn": N_("It is not your turn yet. Your place is kept."),
    "already_claimed": N_("This place was already used, perhaps in another browser."),
    "proof_invalid": N_("This place belongs to another browser. Continue there, or join again here."),
    "code_invalid": N_("This code is not valid for this sale."),
    "code_used": N_("This code was already used."),
    "code_needed": N_("This is a presale: you need a code to join. Everyone can join once the general sale begins."),
    "code_over": N_("The presale has ended. You can join without a code."),
    "person_needed": N_("In this queue everyone has one place. Please sign in before you join."),
    "human_check_failed": N_("We could not verify that you are human. Please try again."),
    "room_closed": N_("The sale is closed at the moment."),
    "room_full": N_("The sale is full at the moment. Your place is kept; please try again in a moment."),
    "room_held": N_("The queue is paused. Nobody loses their place."),
    "room_recovering": N_("The queue is being recounted. Your place is kept; please try again in a moment."),
    "rate_limited": N_("Many requests come from your connection right now. Your place is kept."),
}

# the answers to the form that asks for a notice before the turn
TOLD = {
    "heading": N_("We will tell you"),
    "text": N_("You get one message shortly before your turn. Keep this browser: your place is kept here."),
}
NOT_TOLD = {
    "heading": N_("That did not work"),
    "text": N_("Check the address or the number with its country, such as +43 660 1234567, and try again."),
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
