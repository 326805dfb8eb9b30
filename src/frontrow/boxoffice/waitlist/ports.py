"""The port of the waitlist. The docstrings are the contract."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.events.ports import Catalogue
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.boxoffice.waitlist.model.offers import EndedEntries, NewOffer, Offer
from frontrow.boxoffice.waitlist.model.waitlist import NewEntry, WaitlistEntry, WaitlistSummary, WaitRules
from frontrow.core.errors import FrontrowError


class WaitlistReads(Protocol):
    """Read-only access to the waitlist (`ledger.waitlist`)."""

    async def waitlist_rules(self, event_id: str) -> WaitRules:
        """The event's rules. The default is first come, first served."""
        ...

    async def entry(self, entry_id: str) -> WaitlistEntry | None: ...

    async def entry_of_fan(self, event_id: str, fan: str) -> WaitlistEntry | None:
        """The fan's entry that is waiting or has an offer."""
        ...

    async def entries_ahead(self, entry: WaitlistEntry) -> int:
        """The number of waiting entries before this one."""
        ...

    async def waiting_page(
        self, event_id: str, free: Mapping[str, int], after: tuple[int, int], limit: int
    ) -> list[WaitlistEntry]:
        """Waiting entries in order, from after (rank, number) on, that fit the free seats per section."""
        ...

    async def read_waitlist_summary(self, event_id: str, now_us: int) -> WaitlistSummary: ...

    async def events_to_serve(self, event_ids: Sequence[str]) -> set[str]:
        """Those of the events for which somebody waits, or that are not simply on sale."""
        ...

    async def last_fans(self, event_id: str, seats: Sequence[int]) -> dict[int, str]:
        """The last fan of each of these free seats that was ever held or sold."""
        ...

    async def offer(self, offer_id: str) -> Offer | None: ...

    async def offers_of(self, event_id: str, fan: str, limit: int = 100) -> list[Offer]:
        """This fan's offers, newest first."""
        ...


class WaitlistBook(WaitlistReads, Protocol):
    """Who waits for seats and what was offered to them (B11, `ledger.waitlist`).

    An offer and its hold are written in one transaction, under the same unique index as every hold. An offer is open
    while `now_us < expires_at_us`, swept or not.
    """

    async def put_waitlist_rules(self, rules: WaitRules, now_us: int) -> WaitRules:
        """Set how an event's line is ordered, once. Returns the rules in force."""
        ...

    async def join_waitlist(self, new: NewEntry, now_us: int) -> WaitlistEntry:
        """Join the line, with a fact WaitlistJoined. There is one entry per fan and event under any race.

        A repeated request returns the existing entry; a different one raises `AlreadyWaiting`. A cancelled event raises
        `EventCancelled`.
        """
        ...

    async def leave_waitlist(self, entry_id: str, fan: str, now_us: int) -> WaitlistEntry:
        """Leave the line. An open offer is declined. An entry that already left is returned as is."""
        ...

    async def end_line(self, event_id: str, limit: int, now_us: int) -> EndedEntries:
        """End the line of a cancelled event: at most `limit` entries leave it and their open offers are withdrawn.

        Each entry gets exactly one fact WaitlistEnded. Call again until nobody is in line.
        """
        ...

    async def make_offers(self, news: Sequence[NewOffer]) -> list[Offer | FrontrowError]:
        """Hold the seats of each offer for a waiting entry and write the offer, with facts HoldPlaced and OfferMade.

        A refused offer writes neither and returns the reason: `NotWaiting`, or what `place_hold` raises. The entry
        keeps waiting. A repeated offer id returns the existing offer.
        """
        ...

    async def claim_offer(self, offer_id: str, fan: str, now_us: int, hold_until_us: int) -> Offer:
        """Turn the open offer's hold into an ordinary hold until `hold_until_us`. The entry is served.

        An already claimed offer is returned as is. `OfferOver` (410) from `expires_at_us` on and after a decline.
        `OfferNotFound` for everyone but its fan.
        """
        ...

    async def decline_offer(self, offer_id: str, fan: str, now_us: int) -> Offer:
        """Free the seats at once. The entry keeps its place. An already declined offer is returned as is."""
        ...

    async def end_finished_offers(self, now_us: int, limit: int) -> list[Offer]:
        """End at most `limit` open offers that are past their time (OfferLapsed) or whose booking was paid or ended.

        Among any number of workers, each offer is ended and returned exactly once.
        """
        ...

    async def shift_event(self, event_id: str, was: EventStatus, to: EventStatus, now_us: int) -> Event | None:
        """Change an event's status. None when somebody changed the event in the meantime."""
        ...


class WaitlistLedger(Ledger, Protocol):
    """The ledger as the waitlist uses it."""

    @property
    def catalogue(self) -> Catalogue: ...

    @property
    def waitlist(self) -> WaitlistBook: ...
