"""Choosing seats: the live map with its list, and plain forms for browsers without scripts."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.holds.events_on_sale import Sale
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.holds import SeatsTaken, ShopPass, VisitEnded
from frontrow.boxoffice.holds.model.requested_seats import Wish
from frontrow.boxoffice.pricing.model.prices import TierPrice
from frontrow.boxoffice.seats.model.map_format import SeatState
from frontrow.boxoffice.seats.model.venues import Plan, SeatFlag, Section, SectionKind
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError
from frontrow.shared.local_time import time_text
from frontrow.web.http.access import Caller
from frontrow.web.platform.event_access import shown_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import Shown, section_of, shown
from frontrow.web.site.fans.held_seats import ADD, ANSWERS, asked_again, seats_with
from frontrow.web.site.form_answers import Told, tell, told
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render
from frontrow.web.site.routes import Form, FromForm, action, go_to, page
from frontrow.web.site.tier_colours import tier_colours

Asked = Request[Any, Any, Any]
MAX_BEST: Final = 10
STATES: Final = (N_("free"), N_("held by someone"), N_("taken"), N_("taken"))

# code of a refused hold -> message
REFUSALS: Final = {
    "seats_taken": N_("Someone was faster: these seats are taken."),
    "seats_withheld": N_("These seats are not for sale."),
    "no_such_seats": N_("No matching seats are free. Try another price, fewer seats, or seats apart."),
    "cap_reached": N_("That would be more tickets than one person may have."),
    "lonely_seat": N_("This choice would leave a single seat alone. Please move by one seat."),
    "not_on_sale": N_("The sale is paused or over at the moment."),
    "visit_ended": N_("Your visit ended with your purchase. Enter the waiting room again to buy more."),
    "claims_rebuilding": N_("The seats are being recounted. Please try again in a few seconds."),
}
NOT_EVEN_APART: Final = N_("No matching seats are free. Try another price or fewer seats.")
MAX_KNOWN: Final = 64
_KNOWN_TIERS: dict[str, list[tuple[str, str, frozenset[str]]]] = {}
REFUSED: Final = N_("That did not work. Please try again.")


def pass_for(platform: Platform, caller: Caller, event_id: str) -> ShopPass | None:
    """The visitor's pass for this event, while it lasts."""
    visit = caller.shop_pass
    if visit is None or visit.event_id != event_id or visit.expires_at_us <= platform.clock():
        return None
    platform.room.service.visits.hear(visit.id)
    return visit


@page("/events/{event_id:str}/seats", "seats")
async def seats(request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """The map and the list; without a pass, a redirect to the waiting room."""
    event = await shown_event(platform, event_id)
    visit = pass_for(platform, caller, event_id)
    if visit is None:
        return go_to(f"/v1/events/{event_id}/room/")
    if event.id not in platform.box_office.openings:
        return go_to(f"/events/{event_id}")
    said = told(request)
    response = await _seats_page(request, platform, visit, request.query_params.get("section", ""), said)
    if said.text("refused") == VisitEnded.code:  # it is said; the next click leads to the waiting room
        await platform.room.passes.end_bought(visit, platform.box_office.purchases)
    return response


@action("/events/{event_id:str}/hold", "hold")
async def hold(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Hold the seats selected in the list, or the best that match. Who holds seats already is asked before."""
    event = await shown_event(platform, event_id)
    visit = pass_for(platform, caller, event_id)
    if visit is None:
        return go_to(f"/v1/events/{event_id}/room/")
    wanted, section = form.all("seat")[:100], form.one("section", 40)
    page = f"/events/{event.id}/seats?{urlencode({'section': section} if section else {})}"
    held = await platform.box_office.purchases.held_by(event.id, visit.fan)
    answer = form.one("basket", 10)
    if held is not None and answer not in ANSWERS:
        return tell(request, page, {"asked": "yes", "wanted": wanted, "fields": asked_again(form)})
    wish = None if wanted else _wish(form, section)
    try:
        if held is not None and answer == ADD:
            sale = platform.box_office.sales.get(event.id)
            wanted, wish = seats_with(sale, held, wanted, wish), None
        hold = await platform.box_office.purchases.place_or_change(event.id, visit, wanted, wish)
    except FrontrowError as error:
        apart = "yes" if wish is not None and wish.apart_ok else ""
        taken = [str(seat) for seat in error.seats] if isinstance(error, SeatsTaken) else []
        says: dict[str, str | list[str]] = {"refused": error.code, "wanted": wanted, "taken": taken, "apart": apart}
        return tell(request, page, says, status=error.http_status)
    return go_to(f"/checkout/{hold.booking_id}")


def _wish(form: Form, section: str) -> Wish:
    """What the form asks for."""
    dearest = form.number("max_price_minor", 0, 2**53 - 1, -1)
    return Wish(
        form.number("count", 1, MAX_BEST, 2),
        (section,) if section else (),
        0,
        dearest if dearest >= 0 else None,
        bool(form.one("step_free")),
        bool(form.one("restricted_view_ok")),
        bool(form.one("standing")),
        bool(form.one("apart_ok")),
    )


async def _seats_page(
    request: Asked, platform: Platform, visit: ShopPass, section_id: str, said: Told
) -> Response[bytes]:
    refused, wanted = said.text("refused"), said.texts("wanted")
    taken = [int(seat) for seat in said.texts("taken")]
    event_id = visit.event_id
    event = await shown_event(platform, event_id)
    one = shown(platform, event, await platform.ledger.catalogue.venue(event.venue_id))
    held = _held(platform, await platform.box_office.purchases.held_by(event_id, visit.fan))
    plan = platform.box_office.sales.get(event_id).plan
    feed = platform.box_office.feeds[event_id]
    feed.use()
    states = feed.ring.states
    prices = one.prices.tiers
    found = section_of(plan, section_id)
    return render(
        request,
        "seats.html",
        script="js/seats.js",
        status=said.status,
        one=one,
        visit_of=event_id,
        sections=_sections(plan, one, prices),
        section=_section(*found, states) if found else None,
        prices=prices,
        dearest=len({tier.shown_minor for tier in prices.values()}) > 1,
        wanted=set(wanted),
        refusal=_refusal_text(refused, apart_ok=bool(said.text("apart"))) if refused else "",
        states=STATES,
        instead=_instead(platform.box_office.sales.get(event_id), states, wanted, held, taken)
        if refused == SeatsTaken.code
        else None,
        page_data={**_page_data(platform, one), "held": held, "colours": tier_colours(event.tiers)},
        held=held,
        asked=held is not None and bool(said.text("asked")),
        fields=[field.partition("=")[::2] for field in said.texts("fields")],
        max_best=min(MAX_BEST, event.max_per_person),
    )


def _refusal_text(code: str, *, apart_ok: bool) -> str:
    """What to tell; seats apart are not proposed to who has asked for them."""
    if code == "no_such_seats" and apart_ok:
        return NOT_EVEN_APART
    return REFUSALS.get(code, REFUSED)


def _held(platform: Platform, booking: Booking | None) -> dict[str, Any] | None:
    """The seats that the visitor holds already, and until when."""
    if booking is None:
        return None
    sale = platform.box_office.sales.get(booking.event_id)
    left_s = max(0, -(-(booking.hold_expires_at_us - platform.clock()) // US_PER_S))
    return {
        "booking": booking.id,
        "seats": [sale.plan.seat_ids[seat] for seat in booking.seats],
        "places": [sale.plan.labels.parts(sale.plan.seat_ids[seat]) for seat in booking.seats],
        "until": time_text(booking.hold_expires_at_us),
        "left_s": left_s,
        "total_s": max(left_s, sale.event.hold_ttl_s),
        "amount_minor": booking.amount_minor,
    }


def _page_data(platform: Platform, one: Shown) -> dict[str, Any]:
    """What the map's script needs to begin."""
    event, plan = one.event, platform.box_office.sales.get(one.event.id).plan
    return {
        "event": event.id,
        "base": f"/v1/events/{event.id}",
        "map": f"/v1/events/{event.id}/map/{platform.box_office.openings.maps[event.id].hash}.json",
        "most": event.max_per_person,
        "currency": event.currency,
        "bookingFees": one.prices.booking_fees_minor,
        "lonely": event.lonely_rule_until_percent,
        "order": plan.section_order,
        "ranks": odd_ranks(plan),
        "refusals": [*REFUSALS, ""],
    }


def odd_ranks(plan: Plan) -> dict[str, list[int]]:
    """The ranks of rows where they are not simply counted from the first row on."""
    ranks = {section.id: [row.rank for row in section.rows] for section in plan.sections}
    return {name: rows for name, rows in ranks.items() if rows != list(range(len(rows)))}


def _sections(plan: Plan, one: Shown, prices: dict[str, TierPrice]) -> list[dict[str, Any]]:
    """The sections with free seats, cheapest first."""
    free = {row.name: row.free for row in one.free.sections} if one.free else {}
    rows = [
        {
            "id": section_id,
            "name": name,
            "free": free.get(section_id, 0),
            "cheapest": min((prices[tier] for tier in tiers), key=lambda tier: tier.shown_minor),
        }
        for section_id, name, tiers in _tiers(plan, one.event.plan_hash)
    ]
    return sorted((row for row in rows if row["free"]), key=lambda row: (row["cheapest"].shown_minor, -row["free"]))


def _tiers(plan: Plan, plan_hash: str) -> list[tuple[str, str, frozenset[str]]]:
    """Each section's id, name and price tiers; computed once per plan, because it reads every seat."""
    cached = _KNOWN_TIERS.get(plan_hash)
    if cached is None:
        cached = [
            (section.id, section.name or section.id, frozenset(seat.tier for row in section.rows for seat in row.seats))
            for section in plan.sections
            if section.size
        ]
        if len(_KNOWN_TIERS) >= MAX_KNOWN:
            _KNOWN_TIERS.pop(next(iter(_KNOWN_TIERS)))
        _KNOWN_TIERS[plan_hash] = cached
    return cached


def _section(base: int, section: Section, states: bytearray) -> dict[str, Any]:
    """One section row by row, each seat with its state."""
    rows, index = [], base
    for row in section.rows:
        seats = []
        for seat in row.seats:
            seats.append(
                {
                    "id": f"{section.id}-{row.id}-{seat.number}",
                    "number": seat.number,
                    "state": states[index],
                    "tier": seat.tier,
                    "step_free": bool(seat.flags & SeatFlag.STEP_FREE),
                    "companion": bool(seat.flags & SeatFlag.COMPANION),
                    "restricted": bool(seat.flags & SeatFlag.RESTRICTED_VIEW),
                }
            )
            index += 1
        rows.append({"name": row.name or row.id, "seats": seats})
    area = section.kind is SectionKind.AREA
    return {"id": section.id, "name": section.name or section.id, "rows": rows, "area": area}


def _instead(
    sale: Sale, seen: bytearray, wanted: list[str], held: dict[str, Any] | None, taken: Sequence[int]
) -> dict[str, Any] | None:
    """What was wanted and is free or held by this fan, and for each lost seat another one beside it; with the price.

    `taken` are the seats that were just refused: the map this server has `seen` may not know of them yet.
    """
    states = bytearray(seen)
    for refused in taken:
        states[refused] = states[refused] or SeatState.HELD
    plan, own = sale.plan, set(held["seats"]) if held else set()
    chosen = [index for name in wanted if (index := sale.index_of.get(name)) is not None]
    kept = [index for index in chosen if not states[index] or plan.seat_ids[index] in own]
    lost = [index for index in chosen if index not in kept]
    if not lost:
        return None
    around = kept or lost
    middle_x = sum(plan.seats[index].x for index in around) / len(around)
    middle_y = sum(plan.seats[index].y for index in around) / len(around)
    best: tuple[float, int] | None = None
    for base, section in zip(plan.bases, plan.sections, strict=True):
        first = base
        for row in section.rows:
            for start in range(first, first + len(row.seats) - len(lost) + 1):
                span = range(start, start + len(lost))
                if any(states[start : start + len(lost)]) or not sale.event.withheld.isdisjoint(span):
                    continue
                if any(index in span for index in kept):
                    continue
                seat = plan.seats[start + len(lost) // 2]
                far = (seat.x - middle_x) ** 2 + (seat.y - middle_y) ** 2
                best = min(best or (far, start), (far, start))
            first += len(row.seats)
    if best is None:
        return None
    seats = sorted({*kept, *range(best[1], best[1] + len(lost))})
    names = [plan.seat_ids[seat] for seat in seats]
    return {
        "names": names,
        "places": [plan.labels.parts(name) for name in names],
        "total_minor": sale.quote(seats).total_minor,
    }


ROUTES: list[HTTPRouteHandler] = [seats, hold]
