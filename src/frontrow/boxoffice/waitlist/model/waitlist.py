"""The waitlist (B11): entries in line, and their order. The offers made to them are in `offers`.

The line is ordered by (rank, number). First come, first served gives
everyone rank 0. A lottery gives each fan a rank drawn from a seed whose hash was published before anybody joined, so
that every rank can be recomputed once the seed is published.
"""

import hashlib
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.core.errors import InvalidInput, NotFound, Refused
from frontrow.shared.ids import ID_CHARS, encode32

MAX_SECTIONS: Final = 50
HAS_WAITLIST: Final = frozenset({EventStatus.ON_SALE, EventStatus.SOLD_OUT})  # while the sale lasts
_RANK_BITS: Final = 53  # integers that JSON keeps exact


class WaitOrder(StrEnum):
    FIFO = "fifo"
    LOTTERY = "lottery"


class EntryState(StrEnum):
    WAITING = "waiting"
    OFFERED = "offered"
    SERVED = "served"
    LEFT = "left"
    ENDED = "ended"  # its offers lapsed too often, or the event was cancelled


class WaitRules(msgspec.Struct, frozen=True):
    """How an event's waitlist is ordered; set once. `seed` is secret until the organiser publishes it."""

    event_id: str
    order: WaitOrder = WaitOrder.FIFO
    seed: str = ""
    seed_hash: str = ""

    def rank(self, fan: str) -> int:
        """This fan's rank; smaller is nearer to the front."""
        return 0 if self.order is WaitOrder.FIFO else lottery_rank(self.seed, self.event_id, fan)


def rules_for(event_id: str, order: WaitOrder, seed: str = "") -> WaitRules:
    """The rules of an event. A lottery's seed is committed to by its hash."""
    if order is WaitOrder.LOTTERY and len(seed) < 16:
        raise InvalidInput("a lottery needs a secret seed of 16 characters or more", param="seed")
    return WaitRules(event_id, order, seed, seed_hash(seed) if order is WaitOrder.LOTTERY else "")


def seed_hash(seed: str) -> str:
    """The hash that is published before anybody joins."""
    return hashlib.sha256(seed.encode()).hexdigest()


def lottery_rank(seed: str, event_id: str, fan: str) -> int:
    """The rank drawn for a fan. Nobody can choose it; everyone can recompute it from the published seed."""
    digest = hashlib.blake2b(f"{seed}\n{event_id}\n{fan}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - _RANK_BITS)


class NewEntry(msgspec.Struct, frozen=True):
    """A request to wait for `seat_count` seats: side by side unless `split_ok`, in `sections` or (none) anywhere."""

    id: str
    event_id: str
    fan: str
    seat_count: int
    sections: tuple[str, ...] = ()
    split_ok: bool = False
    rank: int = 0

    def check(self) -> None:
        """Raise `InvalidInput` for an entry that can never be valid."""
        if not self.id or not self.event_id or not self.fan or "\0" in self.id + self.event_id + self.fan:
            raise InvalidInput("an entry needs an id, an event and a fan", param="fan")
        if self.seat_count < 1:
            raise InvalidInput(f"wait for 1 seat or more, not {self.seat_count}", param="count")
        if len(self.sections) > MAX_SECTIONS or any("|" in section or not section for section in self.sections):
            raise InvalidInput(f"choose at most {MAX_SECTIONS} sections of the plan, or none", param="sections")


class WaitlistEntry(msgspec.Struct, frozen=True):
    """A fan in line. `number` grows in the order of joining. `offers_made` and `lapses` count its offers."""

    number: int
    id: str
    event_id: str
    fan: str
    seat_count: int
    sections: tuple[str, ...]
    split_ok: bool
    rank: int
    state: EntryState
    offers_made: int
    lapses: int
    created_at_us: int

    def same_wish(self, new: NewEntry) -> bool:
        return (self.seat_count, set(self.sections), self.split_ok) == (new.seat_count, set(new.sections), new.split_ok)

    def next_offer_ids(self) -> tuple[str, str]:
        """The ids of this entry's next offer and of its booking. They are the same on every server."""
        return _derived("ofr", self.id, self.offers_made), _derived("bkg", self.id, self.offers_made)


def _derived(prefix: str, entry_id: str, turn: int) -> str:
    digest = hashlib.blake2b(f"{prefix}\n{entry_id}\n{turn}".encode(), digest_size=17).digest()
    return f"{prefix}_{encode32(int.from_bytes(digest, 'big') & ((1 << 130) - 1), ID_CHARS)}"


class WaitlistSummary(msgspec.Struct, frozen=True):
    """How many seats of an event are taken, and whether anybody waits."""

    taken: int
    waiting: bool


class EntryNotFound(NotFound):
    code = "waitlist_entry_not_found"


class AlreadyWaiting(Refused):
    """The fan already waits for this event, with other choices."""

    code = "already_waiting"


class NotWaiting(Refused):
    """The entry is not in line, or no longer."""

    code = "not_waiting"


class SeatsStillFree(Refused):
    """There is nothing to wait for: seats that fit are on sale."""

    code = "seats_still_free"
