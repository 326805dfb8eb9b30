"""The waitlist of a sold-out event (B11) for its organiser, and its rule, which can be set once."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.messages.model.messages import NOBODY
from frontrow.boxoffice.waitlist.model.waitlist import EntryState, WaitOrder
from frontrow.core.errors import InvalidInput, Refused
from frontrow.web.http.access import Access, editor_of
from frontrow.web.http.cursors import next_of, read_number
from frontrow.web.platform.event_access import own_event, zone_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
PATH = "/organiser/events/{event_id:str}/waitlist"
PAGE: Final = 50
STATES: Final = {
    EntryState.WAITING: ("warn", N_("Waiting")),
    EntryState.OFFERED: ("brand", N_("Has an offer")),
}
OTHER: Final = ("", N_("Ended"))
ORDERS: Final = {
    WaitOrder.FIFO: N_("First come, first served"),
    WaitOrder.LOTTERY: N_("By lot: joining early gives no advantage"),
}
DONE: Final = {"rules": N_("The rule is set. Everyone who is waiting can rely on it.")}


@page(PATH, "own_waitlist", Access.staff("bookings:read"))
async def waitlist(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """The waitlist of one event."""
    event = await own_event(platform, caller, event_id)
    asked = request.query_params
    try:
        after = read_number(asked.get("after", "")[:200])
    except InvalidInput:
        after = 0
    shown = await platform.organiser.waitlists.read_page(event.id, "", after, PAGE)
    buyers = await platform.ledger.organiser.buyers_of([one.fan for one in shown.entries])
    zone = await zone_of(platform, event)
    lines = [
        (
            one,
            words_for(request).zoned(one.created_at_us, zone, short=True),
            buyers.get(one.fan, NOBODY).email,
            STATES.get(one.state, OTHER),
        )
        for one in shown.entries
    ]
    return render(
        request,
        "organiser/waitlist.html",
        script="js/organiser/dialogs.js",
        of_event=event,
        line=lines,
        more=next_of(shown.entries, PAGE, shown.entries[-1].number if shown.entries else None),
        waiting=shown.counts.get(EntryState.WAITING.value),
        order=ORDERS[shown.rules.order],
        lot=shown.rules.seed_hash,
        may="events:write" in caller.permissions,
        orders=ORDERS,
        done=DONE.get(asked.get("done", ""), ""),
        refusal=N_("The rule was already set and cannot change.") if asked.get("refused") else "",
    )


@action(f"{PATH}/rules", "own_waitlist_rules", Access.staff("events:write"))
async def rules(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm) -> Response[bytes]:
    """Set how the waitlist is ordered. This is possible once."""
    event = await own_event(platform, caller, event_id)
    order = form.one("order")
    if order not in [one.value for one in WaitOrder]:
        raise InvalidInput("there is no such order", param="order")
    try:
        await platform.organiser.waitlists.set_order(editor_of(caller), event.id, WaitOrder(order))
    except Refused:
        return go_to(f"/organiser/events/{event_id}/waitlist?refused=1")
    return go_to(f"/organiser/events/{event_id}/waitlist?done=rules")


ROUTES: list[HTTPRouteHandler] = [waitlist, rules]
