"""The waitlist's port: what its service needs of a ledger. The docstrings are the contract, as in ports.py."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from frontrow.boxoffice.model.events import Event, EventStatus
from frontrow.boxoffice.model.waitlist import EndedEntries, Entry, NewEntry, NewOffer, Offer, WaitlistSummary, WaitRules
from frontrow.core.errors import FrontrowError


class WaitlistBook(Protocol):
    """Who waits for seats and what was offered to them (B11). It is `ledger.waitlist`.

    An offer stands and falls with its hold: both are written in one transaction, under the same unique index as every
    hold. An offer is open while `now_us < expires_at_us`, swept or not.
    """

    async def put_waitlist_rules(self, rules: WaitRules, now_us: int) -> WaitRules:
        """Set how an event's line is ordered, once; answers the rules that stand."""
        ...

    async def waitlist_rules(self, event_id: str) -> WaitRules:
        """The event's rules; first come first served where none were set."""
        ...

    async def join_waitlist(self, new: NewEntry, now_us: int) -> Entry:
        """Into the line, with a fact WaitlistJoined. One entry a fan and event under any race: the same wish again
        answers the entry that is there, another one raises `AlreadyWaiting`; a cancelled event raises
        `EventCancelled`."""
        ...

    async def leave_waitlist(self, entry_id: str, fan: str, now_us: int) -> Entry:
        """Out of the line; an open offer is declined. Left already: answered as is."""
        ...

    async def end_line(self, event_id: str, limit: int, now_us: int) -> EndedEntries:
        """Of a cancelled event: at most `limit` entries leave the line, each with one fact WaitlistEnded whoever asks
        and however often, and their open offers are withdrawn. Call again until nobody is in line."""
        ...

    async def entry(self, entry_id: str) -> Entry | None: ...

    async def entry_of_fan(self, event_id: str, fan: str) -> Entry | None:
        """The fan's entry that waits or has an offer."""
        ...

    async def entries_ahead(self, entry: Entry) -> int:
        """How many waiting entries stand before this one."""
        ...

    async def waiting_page(
        self, event_id: str, free: Mapping[str, int], after: tuple[int, int], limit: int
    ) -> list[Entry]:
        """Waiting entries in order, from behind (rank, number) on, that could fit sections with so many free seats."""
        ...

    async def waitlist_look(self, event_id: str, now_us: int) -> WaitlistSummary: ...

    async def last_fans(self, event_id: str, seats: Sequence[int]) -> dict[int, str]:
        """For each of these free seats that was ever held or sold: who had it last."""
        ...

    async def make_offers(self, news: Sequence[NewOffer]) -> list[Offer | FrontrowError]:
        """For each: hold the seats for a waiting entry and write the offer, with facts HoldPlaced and OfferMade, or
        neither and the reason: `NotWaiting`, or what `place_hold` raises; the entry waits on then.

        The same offer id again is answered as it stands.
        """
        ...

    async def make_offer(self, new: NewOffer) -> Offer:
        """The same for one; the reason is raised."""
        ...

    async def claim_offer(self, offer_id: str, fan: str, now_us: int, hold_until_us: int) -> Offer:
        """The open offer's hold becomes an ordinary hold until then; the entry is served. Claimed already: as is.

        `OfferOver` (410) from `expires_at_us` on and after a decline, `OfferNotFound` for anybody but its fan.
        """
        ...

    async def decline_offer(self, offer_id: str, fan: str, now_us: int) -> Offer:
        """The seats are free at once; the entry waits on in its place. Declined already: as is."""
        ...

    async def settle_offers(self, now_us: int, limit: int) -> list[Offer]:
        """End at most `limit` open offers whose time is over (OfferLapsed) or whose booking went on or ended without
        them; each is ended, and answered, exactly once among any number of workers."""
        ...

    async def offer(self, offer_id: str) -> Offer | None: ...

    async def offers_of(self, event_id: str, fan: str, limit: int = 100) -> list[Offer]:
        """This fan's offers, newest first."""
        ...

    async def shift_event(self, event_id: str, was: EventStatus, to: EventStatus, now_us: int) -> Event | None:
        """Move an event's status unless somebody changed the event meanwhile; None then."""
        ...
