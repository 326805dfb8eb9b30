"""One event of the organiser: how it stands, what can be done with it; copying, closing and cancelling it."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.events.model.events import Event, EventMoveRefused, EventStatus
from frontrow.boxoffice.organiser.model.sales_figures import EventFigures
from frontrow.boxoffice.payments.model.disputes import DisputeState
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.web.http.access import Access, Caller, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import shown
from frontrow.web.site.event_markup import plain_text
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.events.event_steps import ONE, OrganiserEvent, done_of, load_event
from frontrow.web.site.organiser.events.new_event import STEPS
from frontrow.web.site.organiser.overview import next_of
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
Move = Callable[[Editor, str], Awaitable[object]]
CONTROLS: Final = Access.staff("sales:control")
MAX_FAILED: Final = 50  # refunds listed; the API has them all
SETTLED: Final = (RefundState.DONE, RefundState.MOOT)
AGAIN_S: Final = 2  # a running cancellation is looked at again
COPY_OF: Final = N_("Copy of {name}")
NOT_NOW: Final = N_("That is not possible in the state this event is in.")


@page(ONE, "own_event", Access.staff("events:read"))
async def own_event(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """The event with all its settings, and what can be done next."""
    return await _hub(request, platform, caller, await load_event(platform, caller, event_id))


async def _hub(
    request: Asked,
    platform: Platform,
    caller: Caller,
    one: OrganiserEvent,
    *,
    refusal: str = "",
    cancelling: bool = False,
) -> Response[bytes]:
    event, now_us = one.event, platform.clock()
    seen = shown(platform, event, one.venue)
    refunding = (
        await platform.ledger.organiser.cancellation(event.id) if event.status is EventStatus.CANCELLED else None
    )
    running = refunding is not None and refunding.state == "running"
    disputes = await platform.ledger.payments.disputes(caller.organiser_id, event.id, MAX_FAILED)
    failed = await platform.ledger.organiser.failed_refunds(caller.organiser_id, event.id, MAX_FAILED)
    unpaid = running or (refunding is not None and await _unpaid(platform, event))
    return render(
        request,
        "organiser/event.html",
        status=409 if refusal else 200,
        script="js/organiser/event.js",
        one=one,
        of_event=event,
        seen=seen,
        summary=plain_text(event.description),
        steps=STEPS,
        figures=await _figures(platform, caller, one),
        refunding=refunding,
        failed=[refund for _, refund in failed],
        disputed=[one for one in disputes if one.state is DisputeState.OPEN and one.booking_id],
        unpaid=unpaid,
        again_s=AGAIN_S if running else 0,
        next=next_of(event, seen.state, now_us),
        done=done_of(request),
        may_open=opens_later(one, platform.clock()),
        refusal=refusal,
        cancelling=cancelling,
        show_over=max(event.starts_at_us, event.ends_at_us) < now_us,
    )


async def _unpaid(platform: Platform, event: Event) -> bool:
    """Whether refunds of the event are still on their way, or failed."""
    return any(RefundState(row[0]) not in SETTLED for row in await platform.ledger.figures.refunds_by_state(event.id))


async def _figures(platform: Platform, caller: Caller, one: OrganiserEvent) -> EventFigures | None:
    wanted = "figures:read" in caller.permissions and not one.is_draft
    return await platform.organiser.figures.of(one.event) if wanted else None


def opens_later(one: OrganiserEvent, now_us: int) -> bool:
    """Whether the sale is still to open and can be opened now."""
    event = one.event
    return not one.is_final and not event.presale_starts_at_us and event.sale_starts_at_us > now_us


@page(f"{ONE}/cancel", "ask_cancel_event", CONTROLS)
async def ask_cancel(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """What cancelling means, for who has no scripts; with scripts it is a dialog of the event's page."""
    one = await load_event(platform, caller, event_id)
    return await _hub(request, platform, caller, one, cancelling=True)


@action(f"{ONE}/cancel", "cancel_own_event", CONTROLS)
async def cancel(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Stop the sale for good; a job gives everybody their money back."""
    return await _moved(request, platform, caller, event_id, platform.organiser.organise.cancel, "")


@action(f"{ONE}/open-now", "open_own_sale", CONTROLS)
async def open_now(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """The sale opens at once."""
    return await _moved(request, platform, caller, event_id, platform.organiser.organise.open_now, "?done=opened")


@action(f"{ONE}/close", "close_event", CONTROLS)
async def close(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """The show is over."""
    return await _moved(request, platform, caller, event_id, platform.organiser.organise.complete, "?done=closed")


async def _moved(
    request: Asked, platform: Platform, caller: Caller, event_id: str, move: Move, behind: str
) -> Response[bytes]:
    """An event in its new state, seen by the sale at once; or its page again with why not."""
    one = await load_event(platform, caller, event_id)
    try:
        await move(editor_of(caller), event_id)
    except EventMoveRefused:
        return await _hub(request, platform, caller, one, refusal=NOT_NOW)
    await platform.box_office.openings.refresh()
    return go_to(f"/organiser/events/{event_id}{behind}")


@action(f"{ONE}/copy", "copy_event", Access.staff("events:write"))
async def copy(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """A draft like this event."""
    one = await load_event(platform, caller, event_id)
    name = words_for(request)(COPY_OF, name=one.event.name)[:200]
    copied = await platform.organiser.organise.copy(editor_of(caller), event_id, name)
    return go_to(f"/organiser/events/{copied.event.id}/details?done=copied")


ROUTES: list[HTTPRouteHandler] = [own_event, ask_cancel, cancel, open_now, close, copy]
