"""The API v1 operations of a buyer, as calls."""

from collections.abc import Mapping, Sequence
from typing import Any

from frontrow.client import responses as shapes
from frontrow.client.call_engine import Call, path

EVENT, BOOKING = "/v1/events/{}", "/v1/bookings/{}"


def list_events(words: str = "", *, cursor: str = "", limit: int = 20) -> Call[shapes.EventPage]:
    query: dict[str, Any] = {"q": words, "cursor": cursor, "limit": limit}
    return Call("GET", "/v1/events", shapes.EventPage, query={name: value for name, value in query.items() if value})


def get_event(event: str) -> Call[shapes.Event]:
    return Call("GET", path(EVENT, event), shapes.Event)


def get_map(map_url: str) -> Call[dict[str, Any]]:
    """The drawing of the hall; `Event.map_url`."""
    return Call("GET", map_url, dict[str, Any])


def get_seats(event: str) -> Call[bytes]:
    """The state of every seat, encoded as `fsmap/1`."""
    return Call("GET", path(EVENT + "/seats.bin", event), bytes)


def join_room(event: str, *, proof: str | None = None, code: str | None = None, key: str = "") -> Call[shapes.Place]:
    given = {"proof": proof, "code": code}
    body = {name: value for name, value in given.items() if value is not None}
    return Call("POST", path(EVENT + "/room/join", event), shapes.Place, body=body, key=key)


def place_status(event: str, place: str) -> Call[shapes.PlaceStatus]:
    bearer = {"authorization": f"Bearer {place}"}
    return Call("GET", path(EVENT + "/room/status", event), shapes.PlaceStatus, headers=bearer)


def claim_pass(event: str, place: str) -> Call[shapes.Pass]:
    bearer = {"authorization": f"Bearer {place}"}
    return Call("POST", path(EVENT + "/room/claim", event), shapes.Pass, headers=bearer)


def renew_pass(event: str) -> Call[shapes.Pass]:
    return Call("POST", path(EVENT + "/room/renew", event), shapes.Pass, event=event)


def hold_seats(event: str, seats: Sequence[str], *, key: str = "") -> Call[shapes.Hold]:
    body = {"seats": list(seats)}
    return Call("POST", path(EVENT + "/holds", event), shapes.Hold, body=body, event=event, key=key)


def hold_best(event: str, count: int, *, key: str = "", **wish: Any) -> Call[shapes.Hold]:
    """`wish`: sections, min_price_minor, max_price_minor, step_free, standing, apart_ok …"""
    body = {"best": {"count": count, **wish}}
    return Call("POST", path(EVENT + "/holds", event), shapes.Hold, body=body, event=event, key=key)


def extend_hold(booking: str, fence: int | None = None) -> Call[shapes.Booking]:
    body: dict[str, Any] = {"extend": True} | ({} if fence is None else {"fence": fence})
    return Call("PATCH", path(BOOKING + "/hold", booking), shapes.Booking, body=body, booking=booking)


def release_hold(booking: str) -> Call[shapes.Booking]:
    return Call("DELETE", path(BOOKING + "/hold", booking), shapes.Booking, booking=booking)


def pay(
    booking: str, method: str = "", *, email: str | None = None, name: str | None = None, fence: int | None = None
) -> Call[shapes.Booking]:
    given = {"method": method or None, "email": email, "name": name, "fence": fence}
    body = {name: value for name, value in given.items() if value is not None}
    return Call("POST", path(BOOKING + "/pay", booking), shapes.Booking, body=body, booking=booking)


def get_booking(booking: str) -> Call[shapes.Booking]:
    return Call("GET", path(BOOKING, booking), shapes.Booking, booking=booking)


def cancel_booking(booking: str) -> Call[shapes.Booking]:
    return Call("POST", path(BOOKING + "/cancel", booking), shapes.Booking, booking=booking)


def ask_refund(
    booking: str, seats: Sequence[str] = (), add_ons: Mapping[str, int] | None = None, number: int | None = None
) -> Call[shapes.Refund]:
    """Nothing named means everything. `number` is that of the quote: a repeated call then refunds once."""
    body: dict[str, object] = {"seats": list(seats), "add_ons": dict(add_ons or {}), "number": number}
    body = {key: value for key, value in body.items() if key == "seats" or value}
    return Call("POST", path(BOOKING + "/refunds", booking), shapes.Refund, body=body, booking=booking)


def list_refunds(booking: str) -> Call[shapes.Refunds]:
    return Call("GET", path(BOOKING + "/refunds", booking), shapes.Refunds, booking=booking)


def list_tickets(booking: str) -> Call[shapes.Tickets]:
    return Call("GET", path(BOOKING + "/tickets", booking), shapes.Tickets, booking=booking)


def tickets_pdf(booking: str) -> Call[bytes]:
    return Call("GET", path(BOOKING + "/tickets.pdf", booking), bytes, booking=booking)


def join_waitlist(event: str, count: int, sections: Sequence[str] = ()) -> Call[shapes.WaitEntry]:
    body = {"count": count, "sections": list(sections)}
    return Call("POST", path(EVENT + "/waitlist", event), shapes.WaitEntry, body=body, event=event)


def waitlist_position(event: str) -> Call[shapes.WaitEntry]:
    return Call("GET", path(EVENT + "/waitlist", event), shapes.WaitEntry, event=event)


def leave_waitlist(event: str) -> Call[None]:
    return Call("DELETE", path(EVENT + "/waitlist", event), None, event=event)


def list_offers(event: str) -> Call[shapes.Offers]:
    return Call("GET", path(EVENT + "/offers", event), shapes.Offers, event=event)


def claim_offer(offer: str, event: str = "") -> Call[shapes.ClaimedOffer]:
    return Call("POST", path("/v1/offers/{}/claim", offer), shapes.ClaimedOffer, event=event)


def decline_offer(offer: str, event: str = "") -> Call[shapes.Offer]:
    return Call("POST", path("/v1/offers/{}/decline", offer), shapes.Offer, event=event)
