"""Registration for an event's presale: open it, see who registered, draw, download the list."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.presale.model import MAX_BEACON_CHARS, MAX_CODES, DrawOrder, Presale
from frontrow.core.errors import FrontrowError, NotFound, Unavailable
from frontrow.web.http.access import Access, Caller, editor_of
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.platform.registration_file import registrations_file
from frontrow.web.site.languages import N_, FilledText
from frontrow.web.site.organiser.form_fields import OTHERWISE, OUT_OF_RANGE, Errors, Reading, Typed, local_text
from frontrow.web.site.render import render
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
PATH: Final = "/organiser/events/{event_id:str}/presale"
ACCESS: Final = Access.staff("codes:write")
DONE: Final = {
    "saved": N_("Saved."),
    "drawn": N_("The draw has started. Everyone is emailed; this takes a moment."),
}
# error code of a service -> the form's field and the message there
REFUSALS: Final = {
    "closes_at": ("closes", N_("Registration opens, then closes, before the presale starts.")),
    "codes": ("codes", FilledText(OUT_OF_RANGE, low=1, high=MAX_CODES)),
    "presale_starts_at": ("form", N_("This event has no presale. Set its start in the step “Waiting room” first.")),
    "presale_fixed": ("form", N_("People have registered under this rule, or the draw has been made: it is fixed.")),
    "draw_refused": ("form", N_("Registration is still open. You can draw once it has closed.")),
}
ORDERS: Final = {
    DrawOrder.LOTTERY: N_("By lot: everyone has the same chance"),
    DrawOrder.FIRST_COME: N_("First come, first served"),
}


@page(PATH, "presale", ACCESS)
async def presale(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """The current state of the registration."""
    return await _shown(request, platform, caller, event_id)


async def _shown(
    request: Asked,
    platform: Platform,
    caller: Caller,
    event_id: str,
    typed: dict[str, str] | None = None,
    errors: Errors | None = None,
) -> Response[bytes]:
    event = await own_event(platform, caller, event_id)
    venue = await platform.ledger.catalogue.venue(event.venue_id)
    zone, presale = venue.time_zone if venue else "UTC", await platform.presale.presales.find(event_id)
    return render(
        request,
        "organiser/presale.html",
        status=422 if errors else 200,
        of_event=event,
        presale=presale,
        zone=zone,
        counts=await platform.presale.presales.counts(event_id),
        notices=await platform.presale.presales.notices(event_id),
        closed=presale is not None and platform.clock() >= presale.closes_at_us,
        v=Typed(typed or _values(presale, zone)),
        errors=errors or Errors(),
        orders=ORDERS,
        most=MAX_CODES,
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


def _values(presale: Presale | None, zone: str) -> dict[str, str]:
    if presale is None:
        return {"codes": "500", "order": DrawOrder.LOTTERY.value}
    return {
        "opens": local_text(presale.opens_at_us, zone),
        "closes": local_text(presale.closes_at_us, zone),
        "codes": str(presale.codes),
        "order": presale.order.value,
    }


@action(PATH, "open_presale", ACCESS)
async def open_presale(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Open registration, or change its times."""
    event = await own_event(platform, caller, event_id)
    venue = await platform.ledger.catalogue.venue(event.venue_id)
    reading = Reading(form, venue.time_zone if venue else "UTC")
    opens, closes = reading.when("opens"), reading.when("closes")
    codes, order = reading.whole("codes", 1, MAX_CODES), form.one("order", 20)
    if not reading.errors:
        try:
            await platform.presale.presales.open(
                editor_of(caller),
                event,
                opens_at_us=opens,
                closes_at_us=closes,
                codes=codes,
                order=DrawOrder.FIRST_COME if order == DrawOrder.FIRST_COME.value else DrawOrder.LOTTERY,
            )
            return go_to(f"/organiser/events/{event_id}/presale?done=saved")
        except (Unavailable, NotFound):
            raise
        except FrontrowError as error:
            _take(reading.errors, error)
    return await _shown(request, platform, caller, event_id, form.first(), reading.errors)


@action(f"{PATH}/draw", "draw_presale", ACCESS)
async def draw(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Draw. A background job emails everyone."""
    event = await own_event(platform, caller, event_id)
    errors = Errors()
    try:
        await platform.presale.presales.draw(editor_of(caller), event, form.one("beacon", MAX_BEACON_CHARS))
    except (Unavailable, NotFound):
        raise
    except FrontrowError as error:
        _take(errors, error)
        return await _shown(request, platform, caller, event_id, None, errors)
    return go_to(f"/organiser/events/{event_id}/presale?done=drawn")


def _take(errors: Errors, error: FrontrowError) -> None:
    field, text = REFUSALS.get(error.param or error.code) or REFUSALS.get(error.code) or ("form", OTHERWISE)
    errors[field] = text


@page(f"{PATH}/registrations.csv", "registrations_file", ACCESS)
async def file(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """Everyone who registered, with their codes."""
    return await registrations_file(platform, caller, await own_event(platform, caller, event_id))


ROUTES: list[HTTPRouteHandler] = [presale, open_presale, draw, file]
