"""The steps that change an event: details, venue, prices and fees, the sale, seats kept back. Each is a plain form.

A form carries the tag of the version it was made from: whoever edits an older one is told, and nothing typed is lost.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.event_editing import EventEdit
from frontrow.boxoffice.events.model.event_changes import ChangedMeanwhile
from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.events.model.published_changes import FINAL
from frontrow.boxoffice.events.model.room_rules import RoomRules
from frontrow.boxoffice.seats.model.venues import OwnVenue, Plan, Venue
from frontrow.core.errors import FrontrowError, NotFound, Unavailable
from frontrow.web.http.access import Access, Caller, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.events.event_forms import MAX_SEATS_CHARS, READERS, VALUES
from frontrow.web.site.organiser.events.new_event import CURRENCIES, MOST_VENUES, STEPS
from frontrow.web.site.organiser.form_fields import Errors, Reading, Typed
from frontrow.web.site.payment_method_names import name_of
from frontrow.web.site.render import render
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
ONE: Final = "/organiser/events/{event_id:str}"
READS: Final = Access.staff("events:read")
WRITES: Final = Access.staff("events:write")
DONE: Final = {
    "saved": N_("Saved."),
    "draft": N_("The draft is saved. You can stop at any time and continue later."),
    "copied": N_("This is the copy. Give it its own name and dates."),
    "published": N_("Published. Fans see it now."),
    "opened": N_("The sale is open."),
    "closed": N_("The event is closed."),
}
# human check -> its name for organisers
HUMANS: Final = {
    "none": N_("No check"),
    "altcha": N_("A small proof of work in the browser"),
    "turnstile": N_("Cloudflare Turnstile"),
    "hcaptcha": N_("hCaptcha"),
    "recaptcha": N_("reCAPTCHA"),
}
MEANWHILE: Final = N_(
    "Someone else changed this event in the meantime. Your changes are below: save again to keep them."
)


@dataclass(frozen=True, slots=True)
class OrganiserEvent:
    """An event of the organiser with everything its forms need."""

    event: Event
    tag: str
    plan: Plan
    venue: Venue | None
    rules: RoomRules  # of its waiting room, with what was left open filled in

    @property
    def zone(self) -> str:
        return self.venue.time_zone if self.venue else "UTC"

    @property
    def is_draft(self) -> bool:
        return self.event.status is EventStatus.DRAFT

    @property
    def is_final(self) -> bool:
        return self.event.status in FINAL


async def load_event(platform: Platform, caller: Caller, event_id: str) -> OrganiserEvent:
    """The event, if it is this organiser's."""
    found = await platform.organiser.organise.get(editor_of(caller), event_id)
    plan = await platform.organiser.organise.venues.plan(found.event.plan_hash)
    venue = await platform.ledger.catalogue.venue(found.event.venue_id)
    return OrganiserEvent(found.event, found.tag, plan, venue, platform.organiser.organise.rules_of(found.event))


def done_of(request: Asked) -> str:
    """What a form that led here has done."""
    return DONE.get(request.query_params.get("done", ""), "")


def _make_page(step: str) -> HTTPRouteHandler:
    @page(f"{ONE}/{step}", f"event_{step}", READS)
    async def show_step(
        request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
    ) -> Response[bytes]:
        """One step as it is."""
        one = await load_event(platform, caller, event_id)
        whole = replace(one.event, room=one.rules)
        return await _step(request, platform, caller, one, step, VALUES[step](whole, one.plan, one.zone))

    return show_step


def _make_action(step: str) -> HTTPRouteHandler:
    @action(f"{ONE}/{step}", f"change_event_{step}", WRITES, most_bytes=4 * MAX_SEATS_CHARS)
    async def change_step(
        request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
    ) -> Response[bytes]:
        """Change it, or say what is wrong."""
        one = await load_event(platform, caller, event_id)
        reading = Reading(form, one.zone, one.event.currency)
        try:
            edit = READERS[step](reading, replace(one.event, room=one.rules), one.plan)
            if not reading.errors:
                return await _changed(platform, caller, one, step, edit, form.one("tag", 60), on=bool(form.one("on")))
        except (Unavailable, NotFound):
            raise
        except ChangedMeanwhile:
            reading.errors["form"] = MEANWHILE
        except FrontrowError as error:
            reading.errors.add_error(error)
        return await _step(request, platform, caller, one, step, form.first(), reading.errors)

    return change_step


async def _changed(
    platform: Platform, caller: Caller, one: OrganiserEvent, step: str, edit: EventEdit, tag: str, *, on: bool
) -> Response[bytes]:
    await platform.organiser.organise.change(editor_of(caller), one.event.id, edit, tag or None)
    await platform.box_office.openings.refresh()
    return go_to(page_after(one, step, on=on))


def page_after(one: OrganiserEvent, step: str, *, on: bool) -> str:
    """Where a saved step leads: `on` to the next, otherwise to the event."""
    names, path = list(STEPS), f"/organiser/events/{one.event.id}"
    return f"{path}/{names[names.index(step) + 1]}?done=saved" if on else f"{path}?done=saved"


async def _step(
    request: Asked,
    platform: Platform,
    caller: Caller,
    one: OrganiserEvent,
    step: str,
    values: dict[str, str],
    errors: Errors | None = None,
) -> Response[bytes]:
    venues: list[OwnVenue] = []
    if step == "venue" and one.is_draft:
        venues = await platform.organiser.organise.venues.page(editor_of(caller), "", MOST_VENUES)
    sizes = (
        {key: sum(seat.tier == key for seat in one.plan.seats) for key in one.plan.tiers} if step == "prices" else {}
    )
    return render(
        request,
        "organiser/event_step.html",
        status=422 if errors else 200,
        picture_refused=request.query_params.get("picture") == "refused",
        script="js/organiser/withhold.js" if step == "seats" else "js/organiser/wizard.js",
        one=one,
        of_event=one.event,
        step=step,
        steps=STEPS,
        v=Typed(values),
        errors=errors or Errors(),
        venues=venues,
        sizes=sizes,
        currencies=CURRENCIES,
        done=done_of(request),
        can_write=_can_write(caller, one),
        humans={kind: HUMANS[kind] for kind in platform.organiser.organise.human_checks},
        methods=[(m.id, name_of(m), m.family) for m in platform.box_office.provider.methods],
        presale_begun=0 < one.event.presale_starts_at_us <= platform.clock(),
    )


def _can_write(caller: Caller, one: OrganiserEvent) -> bool:
    return "events:write" in caller.permissions and not one.is_final


FORMS: Final = tuple(name for name in STEPS if name not in ("options", "preview"))  # those two have files of their own
ROUTES: list[HTTPRouteHandler] = [*(_make_page(step) for step in FORMS), *(_make_action(step) for step in FORMS)]
