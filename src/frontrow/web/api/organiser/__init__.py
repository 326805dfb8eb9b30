"""The API for organisers and their teams."""

from litestar.handlers import HTTPRouteHandler

from frontrow.web.api.organiser import (
    audit,
    bookings,
    box_office_sales,
    brand,
    buyer_messages,
    events,
    fan_codes,
    invoices,
    pictures,
    presale,
    room,
    sales_figures,
    seller,
    show_dates,
    sign_in,
    team,
    venues,
    waitlist,
    wallets,
    webhooks,
)

ROUTES: list[HTTPRouteHandler] = [
    *bookings.ROUTES,
    *brand.ROUTES,
    *buyer_messages.ROUTES,
    *box_office_sales.ROUTES,
    *events.ROUTES,
    *invoices.ROUTES,
    *pictures.ROUTES,
    *presale.ROUTES,
    *room.ROUTES,
    *waitlist.ROUTES,
    *sales_figures.ROUTES,
    *audit.ROUTES,
    *seller.ROUTES,
    *show_dates.ROUTES,
    *sign_in.ROUTES,
    *team.ROUTES,
    *venues.ROUTES,
    *wallets.ROUTES,
    *webhooks.ROUTES,
    *fan_codes.ROUTES,
]
