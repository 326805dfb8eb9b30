"""The waitlist of an event for its organiser: who waits, and how the line is ordered. The order is set once."""

import secrets
from typing import Final

import msgspec

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.organiser.ports.ledger import OrganiserLedger
from frontrow.boxoffice.waitlist.model.waitlist import WaitlistEntry, WaitOrder, WaitRules, rules_for
from frontrow.core.clock import Clock
from frontrow.core.errors import Refused

SEED_BYTES: Final = 24


class RulesAreSet(Refused):
    """The order of a waitlist is set once, so that people who wait can rely on it."""

    code = "rules_are_set"


class WaitlistPage(msgspec.Struct, frozen=True):
    """One page of entries in the order of joining. `counts` has the number of entries and seats per state."""

    rules: WaitRules
    counts: dict[str, tuple[int, int]]
    entries: list[WaitlistEntry]


class OrganiserWaitlists:
    """Reads and orders waitlists for organisers. The caller has checked whose event it is."""

    def __init__(self, ledger: OrganiserLedger, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock

    async def read_page(self, event_id: str, state: str, after: int, limit: int) -> WaitlistPage:
        """The entries after number `after`. An empty `state` means all."""
        return WaitlistPage(
            await self._ledger.waitlist.waitlist_rules(event_id),
            await self._ledger.organiser.waitlist_counts(event_id),
            await self._ledger.organiser.waitlist_page(event_id, state, after, limit),
        )

    async def set_order(self, editor: Editor, event_id: str, order: WaitOrder) -> WaitRules:
        """Set how the line is ordered. `RulesAreSet` when it has another order already.

        The secret seed of a lottery is made here. Its hash is published at once.
        """
        seed = secrets.token_urlsafe(SEED_BYTES) if order is WaitOrder.LOTTERY else ""
        rules = await self._ledger.waitlist.put_waitlist_rules(rules_for(event_id, order, seed), self._clock())
        if rules.order is not order:
            raise RulesAreSet(f"this event's waitlist is {rules.order.value} already", order=rules.order.value)
        detail = {"order": rules.order.value, "seed_hash": rules.seed_hash}
        await self._ledger.organiser.note(Change(editor, "waitlist_rules", event_id, self._clock(), detail))
        return rules
