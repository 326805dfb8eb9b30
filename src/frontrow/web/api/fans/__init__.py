"""The API for fans: events, holds, bookings, tickets, waitlist."""

from litestar.handlers import HTTPRouteHandler

from frontrow.web.api.fans import (
    account,
    booking_choices,
    bookings,
    events,
    holds,
    invoices,
    room,
    seat_map,
    sign_in,
    signups,
    tickets,
    transfers,
    waitlist,
    wallet_passes,
)

ROUTES: list[HTTPRouteHandler] = [
    *booking_choices.ROUTES,
    *bookings.ROUTES,
    *events.ROUTES,
    *holds.ROUTES,
    *invoices.ROUTES,
    *account.ROUTES,
    *room.ROUTES,
    *seat_map.ROUTES,
    *sign_in.ROUTES,
    *signups.ROUTES,
    *tickets.ROUTES,
    *transfers.ROUTES,
    *waitlist.ROUTES,
    *wallet_passes.ROUTES,
]
