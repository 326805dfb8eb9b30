"""The id of a buyer without an account: the place in the waiting room that they came through.

    place:<event>:<lane>.<epoch>.<position>.<issued_s>

It contains the event because every room counts from 1. It contains the second in which the place was issued because a
room that lost both its store and its audit counts from 1 again. Until version 12 of the ledger the id was only
`place:<lane>.<epoch>.<position>`; `with_event` reads those that are still in use (passes, facts, deliveries). Ids of
this form are made only from a signed place. Nobody can choose one.
"""

from typing import Final

PLACE_PREFIX: Final = "place:"


def person_of_place(event: str, lane: int, epoch: int, position: int, issued_s: int) -> str:
    """The id of the person with one place in one event's room."""
    return f"{PLACE_PREFIX}{event}:{lane}.{epoch}.{position}.{issued_s}"


def with_event(person: str, event: str) -> str:
    """`person`, with the event added if it is an old id without one."""
    if person.startswith(PLACE_PREFIX) and ":" not in person[len(PLACE_PREFIX) :]:
        return f"{PLACE_PREFIX}{event}:{person[len(PLACE_PREFIX) :]}"
    return person


def is_reserved(person: str) -> bool:
    """Whether this form of id is reserved for places."""
    return person.lstrip().lower().startswith(PLACE_PREFIX)
