"""Cards that are not accepted: which refusals are typing errors, and which use up one of the event's tries. Pure."""

from typing import Final

# Typing errors. They are errors of the form and never count as a declined card.
MISTYPED: Final = frozenset(
    {
        "incorrect_number",
        "invalid_number",
        "incomplete_number",
        "incorrect_cvc",
        "invalid_cvc",
        "incomplete_cvc",
        "invalid_expiry_month",
        "invalid_expiry_year",
        "invalid_expiry_month_past",
        "invalid_expiry_year_past",
        "incomplete_expiry",
        "incorrect_zip",
        "incomplete_zip",
        "incorrect_address",
    }
)


def count_decline(declines: int, reason: str) -> int:
    """How many of the tries are used up after a card was refused for this reason."""
    return declines + (reason not in MISTYPED)


def may_try_again(declines: int, reason: str, tries: int) -> bool:
    """Whether another card may be given. `tries`: how many cards the event lets a fan try; 0 once the hold is over."""
    return tries > 0 and (reason in MISTYPED or declines < tries)
