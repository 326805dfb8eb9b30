"""The name of somebody who buys without an account: the place in the waiting room they came through.

    place:<event>:<lane>.<epoch>.<position>.<issued_s>

The event is in it because every room counts from 1. The second the place was issued is in it because a room that lost
both its store and its audit counts from 1 again. Until version 12 of the ledger the name was only
`place:<lane>.<epoch>.<position>`; `with_event` reads those that are still on their way (passes, facts, deliveries).
Names of this form are made from a signed place only; nobody can ask for one.
"""

from typing import Final

PLACE_PREFIX: Final = "place:"


def person_of_place(event: str, lane: int, epoch: int, position: int, issued_s: int) -> str:
    """The person of one place of one event's room."""
    return f"{PLACE_PREFIX}{event}:{lane}.{epoch}.{position}.{issued_s}"


def with_event(person: str, event: str) -> str:
    """`person`, with the event added to a place's name from before names had one."""
    if person.startswith(PLACE_PREFIX) and ":" not in person[len(PLACE_PREFIX) :]:
        return f"{PLACE_PREFIX}{event}:{person[len(PLACE_PREFIX) :]}"
    return person


def is_reserved(person: str) -> bool:
    """Whether only a place may be named like this."""
    return person.lstrip().lower().startswith(PLACE_PREFIX)
