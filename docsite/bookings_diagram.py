"""Draws docs/bookings.md from the table of moves, so the page cannot say anything else than the code does.

python -m docsite.bookings_diagram > docs/bookings.md
"""

from frontrow.boxoffice.holds.model.bookings import (
    ACTIVE_STATES,
    HOLD_STATES,
    MOVES,
    NEEDS_LIVE_HOLD,
    BookingState,
    Move,
)

MEANING = {
    Move.ADMIT: "the waiting room lets the person in",
    Move.HOLD: "seats are held; the booking's row and its fence are made",
    Move.EXTEND: "the hold's end moves to a later time",
    Move.BEGIN_PAYMENT: "the fan pays",
    Move.STEP_BACK: "the fan wants to pay otherwise; the authorisation is void",
    Move.CONFIRM: "the pivot: authorised and sold; from here only forward",
    Move.DECLINE: "the last card that may be tried was declined; the seats are free at once",
    Move.RELEASE: "the fan gives the seats back before paying",
    Move.WITHDRAW: "the fan gives the seats back while a payment is open; that is voided in the same transaction",
    Move.EXPIRE: "the time of the hold is over",
    Move.CANCEL: "a sold booking ends without money",
    Move.REFUND: "all money goes back and the seats are free",
    Move.REFUND_SOME: "some seats and their money go back",
}


def diagram() -> list[str]:
    """The moves that lead somewhere, as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> queued"]
    for (state, move), cell in MOVES.items():
        if cell.to is not None and not cell.repeat:
            lines.append(f"    {state} --> {cell.to}: {move}")
    finals = [s for s in BookingState if all(MOVES[s, m].to is None or MOVES[s, m].repeat for m in Move)]
    return lines + [f"    {state} --> [*]" for state in finals]


def table() -> list[str]:
    """Every cell."""
    lines = ["| state | " + " | ".join(Move) + " |", "|---" * (len(Move) + 1) + "|"]
    for state in BookingState:
        words = []
        for move in Move:
            cell = MOVES[state, move]
            words.append("=" if cell.repeat else str(cell.to) if cell.to else "-")
        lines.append(f"| **{state}** | " + " | ".join(words) + " |")
    return lines


def page() -> str:
    """The whole page."""
    active = ", ".join(s for s in BookingState if s in ACTIVE_STATES)
    holds = " and ".join(s for s in BookingState if s in HOLD_STATES)
    live = ", ".join(m for m in Move if m in NEEDS_LIVE_HOLD)
    return "\n".join(
        [
            "# The states of a booking",
            "",
            "Drawn from the table in `src/frontrow/boxoffice/holds/model/bookings.py` by",
            "`python -m docsite.bookings_diagram > docs/bookings.md`.",
            "A test checks that it is current.",
            "",
            "```mermaid",
            *diagram(),
            "```",
            "",
            "Each cell says where a move leads. `=` means already done: a repeated or late request is a success",
            "that changes nothing. `-` means refused with 409, or with 410 when the hold has expired.",
            "",
            *table(),
            "",
            f"Nobody else can have the seats of {active} bookings. {holds.capitalize()} end by themselves",
            "at `hold_expires_at_us`: from that instant on the seats are free, whether or not the sweeper has run.",
            f"Only a live hold allows: {live}.",
            "",
            "`queued` and `selecting` are proven by a place and a pass; the ledger's row is created by `hold`.",
            "",
            "| move | means |",
            "|---|---|",
            *[f"| {move} | {MEANING[move]} |" for move in Move],
            "",
        ]
    )


if __name__ == "__main__":
    print(page(), end="")
