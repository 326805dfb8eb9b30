"""What organisers do with their events (B13): create, change, publish, pause, complete, cancel.

Every change applies to the version that was read, in one transaction with a note of who made it. An edit of an older
version is refused. Servers that sell the event see the change within a second. The plan and the currency are fixed once
the event is published.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from frontrow.boxoffice.events.model.event_changes import (
    Cancellation,
    Change,
    ChangedMeanwhile,
    Editor,
    check_tag,
    describe_changes,
    tag_of,
)
from frontrow.boxoffice.events.model.events import (
    Event,
    EventLink,
    EventMove,
    EventMoveRefused,
    EventNotFound,
    EventStatus,
    Fee,
    FeesShown,
    PriceTier,
    check_event,
)
from frontrow.boxoffice.events.model.published_changes import FINAL, FixedOncePublished, check_change, check_editable
from frontrow.boxoffice.events.model.room_rules import HUMAN_CHECKS, RoomRules, check_rules
from frontrow.boxoffice.events.pictures import PREPARE_WITHIN_S, prepare_picture
from frontrow.boxoffice.events.ports import EventLedger
from frontrow.boxoffice.holds.model.holds import SeatsTaken
from frontrow.boxoffice.payments.model.payment_rules import PaymentRules
from frontrow.boxoffice.people.model.people import checked_name
from frontrow.boxoffice.pricing.model.sale_options import AddOn, Discount, SharedLimit, TicketType
from frontrow.boxoffice.pricing.model.taxes import SELLERS_TAX
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from frontrow.boxoffice.seats.model.venues import Plan, UnknownSeats
from frontrow.boxoffice.seats.venues import Venues
from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput
from frontrow.shared.heavy_work import HeavyWork, Urgency
from frontrow.shared.ids import Ids
from frontrow.shared.money import Money

MAX_TRIES: Final = 20  # how often an edit without a tag is repeated on a newer version
MAX_DESCRIPTION_CHARS: Final = 10_000


class EventEdit(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to an event. None leaves a field as it is. `withheld` are seat ids."""

    name: str | None = None
    description: str | None = None
    venue_id: str | None = None
    currency: str | None = None
    starts_at_us: int | None = None
    ends_at_us: int | None = None
    sale_starts_at_us: int | None = None
    sale_ends_at_us: int | None = None
    tiers: tuple[PriceTier, ...] | None = None
    fees: tuple[Fee, ...] | None = None
    max_per_person: int | None = None
    hold_ttl_s: int | None = None
    lonely_rule_until_percent: int | None = None
    refunds: RefundPolicy | None = None
    withheld: tuple[str, ...] | None = None
    card_tries: int | None = None
    payments: PaymentRules | None = None
    room: RoomRules | None = None  # only its fields that are not None
    rotating_codes: bool | None = None
    reentry: bool | None = None
    block_disputed: bool | None = None
    names_at_gates: bool | None = None
    transfers_allowed: bool | None = None
    line_up: tuple[str, ...] | None = None
    picture: str | None = None  # a hash that `put_picture` gave; empty: none
    links: tuple[EventLink, ...] | None = None
    tax_basis_points: int | None = None  # SELLERS_TAX: the seller's own rate
    presale_starts_at_us: int | None = None  # 0: no presale
    ticket_types: tuple[TicketType, ...] | None = None
    add_ons: tuple[AddOn, ...] | None = None
    discounts: tuple[Discount, ...] | None = None
    limits: tuple[SharedLimit, ...] | None = None
    fees_shown: FeesShown | None = None

    def fields(self) -> list[str]:
        """The fields it changes."""
        return [name for name in self.__struct_fields__ if getattr(self, name) is not None]


class VersionedEvent(msgspec.Struct, frozen=True):
    """An event with the tag of this version."""

    event: Event
    tag: str


class OrganiserEvents:
    """Creates and changes the events of organisers. `venues` does the same for venues."""

    def __init__(
        self,
        ledger: EventLedger,
        clock: Clock,
        ids: Ids,
        *,
        room_defaults: RoomRules | None = None,
        human_checks: tuple[str, ...] = HUMAN_CHECKS,
        work: HeavyWork | None = None,
    ) -> None:
        """`room_defaults` are the server's rules for waiting rooms, `human_checks` the checks it is set up for."""
        self._ledger, self._clock, self._ids = ledger, clock, ids
        self.room_defaults, self.human_checks = (room_defaults or RoomRules()).filled(RoomRules()), human_checks
        self._work = work or HeavyWork()
        self.venues = Venues(ledger, clock, ids, self._work)

    async def read(self, editor: Editor, event_id: str) -> tuple[Event, str]:
        """The event and its document as stored. Another organiser's event raises `EventNotFound`."""
        document = await self._ledger.organiser.event_document(event_id)
        event = msgspec.json.decode(document, type=Event) if document is not None else None
        if document is None or event is None or not event.organiser_id or event.organiser_id != editor.organiser_id:
            raise EventNotFound(f"there is no event {event_id[:60]}", event=event_id[:60])
        return event, document

    async def get(self, editor: Editor, event_id: str) -> VersionedEvent:
        """The event as it is now. Another organiser's event raises `EventNotFound`."""
        event, document = await self.read(editor, event_id)
        return VersionedEvent(event, tag_of(document))

    async def create(self, editor: Editor, edit: EventEdit) -> VersionedEvent:
        """Create a draft. Prices may follow later; everything that is given must be valid."""
        needed = ("name", "venue_id", "currency", "starts_at_us", "sale_starts_at_us", "sale_ends_at_us")
        for name in needed:
            if getattr(edit, name) is None:
                raise InvalidInput(f"{name.removesuffix('_us')} is required", param=name.removesuffix("_us"))
        now_us = self._clock()
        empty = Event(self._ids.new("evt"), "", "", "", "EUR", 0, 0, 0, (), organiser_id=editor.organiser_id)
        if edit.fees is None and (seller := await self._ledger.organiser.seller(editor.organiser_id)) is not None:
            edit = msgspec.structs.replace(edit, fees=seller.fees_in(edit.currency or ""))
        event = await self._apply_edit(editor, empty, edit)
        change = Change(editor, "create_event", event.id, now_us, {"venue": event.venue_id})
        await self._ledger.organiser.add_event(event, change)
        return await self.get(editor, event.id)

    async def copy(self, editor: Editor, event_id: str, name: str) -> VersionedEvent:
        """Create a draft from another event: its plan, prices, rules and dates, but nothing of its sale."""
        event, _ = await self.read(editor, event_id)
        draft = replace(event, id=self._ids.new("evt"), name=checked_name(name), status=EventStatus.DRAFT)
        draft = replace(draft, paused=False, show_id="")
        change = Change(editor, "create_event", draft.id, self._clock(), {"like": event.id})
        await self._ledger.organiser.add_event(draft, change)
        return await self.get(editor, draft.id)

    async def change(self, editor: Editor, event_id: str, edit: EventEdit, tag: str | None = None) -> VersionedEvent:
        """Change some fields of the event."""
        for _ in range(MAX_TRIES):
            event, document = await self.read(editor, event_id)
            check_tag(tag, tag_of(document))
            check_editable(event, venue_id=edit.venue_id, currency=edit.currency)
            changed = await self._apply_edit(editor, event, edit)
            if event.status is not EventStatus.DRAFT:
                check_change(event, changed, self.room_defaults, self._clock())
            fields = edit.fields()
            detail = {"fields": fields, "changes": describe_changes(event, changed, fields)}
            change = Change(editor, "change_event", event_id, self._clock(), detail)
            if changed == event or await self._ledger.organiser.swap_event(
                document,
                changed,
                change,
                tax_rates=_tax_history(event, changed),
                left_picture=_left_picture(event, changed),
            ):
                return await self.get(editor, event_id)
        raise ChangedMeanwhile("this event is being changed by others; try again", param="If-Match")

    async def put_picture(self, editor: Editor, event_id: str, encoded: str) -> VersionedEvent:
        """Show this picture (in base64) with the event. It is cropped and written anew beside the event loop."""
        await self.read(editor, event_id)  # whose event it is, before the work
        picture = await self._work.run(Urgency.IMPORT, PREPARE_WITHIN_S, prepare_picture, encoded)
        await self._ledger.pictures.add(picture.hash, editor.organiser_id, picture.body, self._clock())
        return await self.change(editor, event_id, EventEdit(picture=picture.hash))

    async def publish(self, editor: Editor, event_id: str, tag: str | None = None) -> VersionedEvent:
        """Move draft -> on_sale. Everything must be complete and valid."""

        def published(event: Event) -> Event:
            now_us = self._clock()
            if event.sale_ends_at_us <= now_us:
                raise InvalidInput("the sale has already ended; move its end to the future", param="sale_ends_at")
            if event.starts_at_us <= now_us:
                raise InvalidInput("the show has already started; move its start to the future", param="starts_at")
            return replace(event.moved(EventMove.PUBLISH), room=self.rules_of(event))

        event, _ = await self.read(editor, event_id)
        check_event(event, await self.venues.plan(event.plan_hash))
        return await self._move(editor, event_id, "publish_event", published, tag)

    def rules_of(self, event: Event) -> RoomRules:
        """The rules of this event's waiting room, with the server's defaults for what the organiser left open."""
        return event.room.filled(self.room_defaults, presale=bool(event.presale_starts_at_us))

    async def complete(self, editor: Editor, event_id: str, tag: str | None = None) -> VersionedEvent:
        """Complete the event: the show is over, or nothing more is sold."""
        return await self._move(editor, event_id, "complete_event", lambda event: event.moved(EventMove.COMPLETE), tag)

    async def pause(self, editor: Editor, event_id: str, paused: bool) -> VersionedEvent:
        """Pause or resume the sale. Seats that are held may still be paid."""

        def with_pause(event: Event) -> Event:
            if event.status in FINAL:
                raise FixedOncePublished(f"an event that is {event.status.value} has no sale to pause")
            return replace(event, paused=paused)

        return await self._move(editor, event_id, "pause_sale" if paused else "resume_sale", with_pause)

    async def open_now(self, editor: Editor, event_id: str, tag: str | None = None) -> VersionedEvent:
        """Open the sale at once instead of at its time. A draft opens when it is published.

        `EventMoveRefused` for an event that is over, and for one with a presale: its presale begins the sale.
        """

        def opened(event: Event) -> Event:
            if event.status in FINAL:
                raise EventMoveRefused(f"an event that is {event.status.value} has no sale to open")
            if event.presale_starts_at_us:
                raise EventMoveRefused("the sale begins with its presale; move the presale instead")
            return replace(event, sale_starts_at_us=min(event.sale_starts_at_us, self._clock()))

        return await self._move(editor, event_id, "open_sale", opened, tag)

    async def cancel(self, editor: Editor, event_id: str, tag: str | None = None) -> Cancellation:
        """Cancel the event and begin to refund everyone. Called again, it returns how far that is."""

        def cancelled(event: Event) -> Event:
            return event if event.status is EventStatus.CANCELLED else event.moved(EventMove.CANCEL)

        versioned = await self._move(editor, event_id, "cancel_event", cancelled, tag, starts_refunds=True)
        cancellation = await self._ledger.organiser.cancellation(event_id)
        if cancellation is None:  # cancelled before there were jobs: start one now
            change = Change(editor, "cancel_event", versioned.event.id, self._clock())
            await self._ledger.organiser.begin_cancellation(change)
            cancellation = await self._ledger.organiser.cancellation(event_id)
        assert cancellation is not None
        return cancellation

    async def _move(
        self,
        editor: Editor,
        event_id: str,
        act: str,
        make: Callable[[Event], Event],
        tag: str | None = None,
        *,
        starts_refunds: bool = False,
    ) -> VersionedEvent:
        for _ in range(MAX_TRIES):
            event, document = await self.read(editor, event_id)
            check_tag(tag, tag_of(document))
            moved = make(event)
            if moved == event:
                return VersionedEvent(event, tag_of(document))
            change = Change(editor, act, event_id, self._clock(), {"status": moved.status, "paused": moved.paused})
            if await self._ledger.organiser.swap_event(document, moved, change, starts_refunds=starts_refunds):
                return await self.get(editor, event_id)
        raise ChangedMeanwhile("this event is being changed by others; try again", param="If-Match")

    async def _apply_edit(self, editor: Editor, event: Event, edit: EventEdit) -> Event:
        """The event with the edit applied and checked."""
        values: dict[str, Any] = {name: getattr(edit, name) for name in edit.fields()}
        wanted = values.pop("withheld", None)
        if edit.tax_basis_points == SELLERS_TAX:
            values["tax_basis_points"] = None
        if edit.room is not None:
            values["room"] = event.room.edited(edit.room)
            check_rules(edit.room, self.human_checks)
        if edit.name is not None:
            values["name"] = checked_name(edit.name)
        if edit.venue_id is not None:
            values["plan_hash"] = await self._plan_of(editor, edit.venue_id)
        if len(edit.description or "") > MAX_DESCRIPTION_CHARS:
            raise InvalidInput(f"description has at most {MAX_DESCRIPTION_CHARS:,} characters", param="description")
        if edit.currency is not None:
            Money(0, edit.currency)  # raises for a wrong currency
        changed: Event = replace(event, **values)
        plan = await self.venues.plan(changed.plan_hash)
        if wanted is not None:
            changed = replace(changed, withheld=await self._withheld(event, plan, wanted))
        check_draft(changed, plan)
        return changed

    async def _plan_of(self, editor: Editor, venue_id: str) -> str:
        found = await self._ledger.organiser.own_venue(editor.organiser_id, venue_id)
        if found is None:
            raise InvalidInput(f"there is no venue {venue_id[:60]}", param="venue")
        return found.venue.plan_hash

    async def _withheld(self, event: Event, plan: Plan, seat_ids: Sequence[str]) -> frozenset[int]:
        """The seats to withhold. Seats that are held or sold cannot be withheld."""
        try:
            seats = frozenset(plan.indexes(seat_ids))
        except UnknownSeats as error:
            raise InvalidInput(error.message, param="withheld") from None
        taken = await self._ledger.organiser.taken_seats(event.id, sorted(seats - event.withheld), self._clock())
        if taken:
            refused = SeatsTaken(event.id, taken)
            refused.param, refused.about["seats"] = "withheld", [plan.seat_id(seat) for seat in taken[:20]]
            raise refused
        return seats


def _tax_history(was: Event, event: Event) -> tuple[int, int] | None:
    """The old and the new tax rate, if they differ. Receipts of earlier sales keep the old one."""
    if was.tax_basis_points == event.tax_basis_points:
        return None
    before, after = (SELLERS_TAX if one.tax_basis_points is None else one.tax_basis_points for one in (was, event))
    return before, after


def _left_picture(was: Event, event: Event) -> str:
    """The picture that this event no longer shows, or empty."""
    return was.picture if was.picture != event.picture else ""


def check_draft(event: Event, plan: Plan) -> None:
    """Check the event. A draft may have no prices yet; everything else must be valid."""
    unpriced = event.status is EventStatus.DRAFT and not event.tiers
    filler = tuple(PriceTier(key, Money(0, event.currency)) for key in plan.tiers)
    check_event(replace(event, tiers=filler) if unpriced else event, plan)
