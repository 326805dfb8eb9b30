"""Message to buyers (B13, B15): write it, see it as a buyer will, confirm, and follow how far it is.

A message that was not sent yet is kept as a draft, so that looking at it, changing it and sending it are pages of their
own. Sending the same draft twice sends one message.
"""

from collections.abc import Mapping
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.messages.model.buyer_messages import (
    MAX_PER_DAY,
    MAX_SUBJECT_CHARS,
    MAX_TEXT_CHARS,
    VARIABLES,
    Audience,
    AudienceKind,
    BuyerMessage,
    BuyerMessageState,
    NoRecipients,
    TooManyMessages,
    UnknownVariable,
)
from frontrow.core.errors import FrontrowError, InvalidInput, NotFound
from frontrow.web.http.access import Access, editor_of
from frontrow.web.platform.event_access import own_event, zone_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.organisation.change_log import names_of_team
from frontrow.web.site.render import render
from frontrow.web.site.routes import FromForm, action, go_to, page
from frontrow.web.site.security_headers import PagePolicy

Asked = Request[Any, Any, Any]
ALL: Final = "/organiser/events/{event_id:str}/messages"
ONE: Final = f"{ALL}/{{message_id:str}}"
WRITES: Final = Access.staff("messages:write")
WITH_FRAME: Final = PagePolicy({"frame-src": "'self'"})
# A mail has its styles inside. Nothing else of it may do anything.
MAIL: Final = PagePolicy({"style-src": "'unsafe-inline'", "sandbox": "allow-same-origin"}, framed=True)
LISTED: Final = 20
DONE: Final = {"sent": N_("The message is on its way.")}
REFUSALS: Final = {
    "subject": N_("Please write a subject of at most 150 characters."),
    "text": N_("Please write a text of at most 5,000 characters."),
    "variable": N_("There is no such variable. You can use {name}, {event}, {date} and {booking}."),
    "audience": N_("Choose who gets the message."),
    NoRecipients.code: N_("Nobody would get this message: no one there has a valid ticket and an email address."),
    TooManyMessages.code: N_("Too many messages in 24 hours. Try again tomorrow."),
}


@page(ALL, "buyer_messages", WRITES)
async def messages(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """The form, and what was sent."""
    event, query = await own_event(platform, caller, event_id), request.query_params
    values = {"to": "all", "subject": "", "text": ""}
    if booking := query.get("booking", "")[:60]:
        values["to"] = f"booking:{booking}"
    if draft := query.get("change", "")[:60]:
        found = await platform.organiser.messages.of_event(event, draft)
        values = {"to": _value(found.audience), "subject": found.subject, "text": found.text}
    return await _form(request, platform, event, values)


async def _form(
    request: Asked, platform: Platform, event: Event, values: Mapping[str, str], problem: str = "", field: str = ""
) -> Response[bytes]:
    plan = await platform.organiser.organise.venues.plan(event.plan_hash)
    tiers = [tier for tier in event.tiers if tier.key in plan.tiers]
    sent = await platform.organiser.messages.sent(event, 0, LISTED)
    return render(
        request,
        "organiser/messages.html",
        status=422 if problem else 200,
        of_event=event,
        zone=await zone_of(platform, event),
        v=values,
        one_booking=values["to"].removeprefix("booking:") if values["to"].startswith("booking:") else "",
        sections=[(f"section:{one.id}", one.name or one.id) for one in plan.sections] if len(plan.sections) > 1 else [],
        tiers=[(f"tier:{one.key}", one.name or one.key) for one in tiers] if len(tiers) > 1 else [],
        variables=VARIABLES,
        most_subject=MAX_SUBJECT_CHARS,
        most_text=MAX_TEXT_CHARS,
        most=MAX_PER_DAY,
        problem=problem,
        field=field,
        sent=[
            (one, await platform.organiser.messages.progress(one), audience_name(one.audience, event)) for one in sent
        ],
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


def _value(audience: Audience) -> str:
    """An audience as the form's field names it."""
    return f"{audience.kind.value}:{audience.key}" if audience.key else audience.kind.value


def _audience(value: str) -> Audience:
    kind, _, key = value.partition(":")
    try:
        return Audience(AudienceKind(kind), key)
    except ValueError:
        raise InvalidInput("choose who gets the message", param="audience") from None


def audience_name(audience: Audience, event: Event) -> str:
    """The section, the price tier or the booking by its name; empty for all."""
    names = {tier.key: tier.shown_name for tier in event.tiers}
    return names.get(audience.key, audience.key) if audience.kind is AudienceKind.TIER else audience.key


@action(ALL, "write_buyer_message", WRITES)
async def write(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Keep the draft, and show it as a buyer will see it."""
    event = await own_event(platform, caller, event_id)
    values = {"to": form.one("to", 120), "subject": form.one("subject", 400), "text": form.one("text", 20_000)}
    service = platform.organiser.messages
    try:
        audience = _audience(values["to"])
        draft = await service.write(editor_of(caller), event, audience, values["subject"], values["text"])
        await service.preview(event, draft)
    except (InvalidInput, NotFound, NoRecipients) as error:
        param = error.param or "audience"
        reason = "variable" if isinstance(error, UnknownVariable) else param
        problem = REFUSALS.get(error.code, REFUSALS.get(reason, REFUSALS["audience"]))
        return await _form(request, platform, event, values, problem, param)
    await service.keep_draft(draft)
    return go_to(f"/organiser/events/{event.id}/messages/{draft.id}")


@page(ONE, "buyer_message", WRITES)
async def message(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], message_id: FromPath[str]
) -> Response[bytes]:
    """A draft as a buyer will see it, with the button that sends it; or how far the message is."""
    event = await own_event(platform, caller, event_id)
    found = await platform.organiser.messages.of_event(event, message_id)
    return await _message(request, platform, event, found, await names_of_team(platform, caller))


async def _message(
    request: Asked,
    platform: Platform,
    event: Event,
    found: BuyerMessage,
    names: Mapping[str, str],
    problem: str = "",
) -> Response[bytes]:
    is_draft, preview = found.state is BuyerMessageState.DRAFT, None
    if is_draft:
        try:
            preview = await platform.organiser.messages.preview(event, found)
        except NoRecipients:
            problem = problem or REFUSALS[NoRecipients.code]
    return render(
        request,
        "organiser/message.html",
        status=409 if problem else 200,
        policy=WITH_FRAME,
        script="" if is_draft or found.state is BuyerMessageState.SENT else "js/organiser/message.js",
        of_event=event,
        zone=await zone_of(platform, event),
        message=found,
        audience=audience_name(found.audience, event),
        is_draft=is_draft,
        preview=preview,
        mails=await platform.organiser.messages.progress(found),
        who=names.get(found.made_by, found.made_by),
        problem=problem,
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


@page(f"{ONE}/mail", "buyer_message_mail", WRITES)
async def mail(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], message_id: FromPath[str]
) -> Response[bytes]:
    """The mail itself, for the frame on the page."""
    event = await own_event(platform, caller, event_id)
    found = await platform.organiser.messages.of_event(event, message_id)
    preview = await platform.organiser.messages.preview(event, found)
    headers = MAIL.headers(platform.settings) | {"cache-control": "private, no-store"}
    return Response(preview.example.html.encode(), headers=headers, media_type="text/html; charset=utf-8")


@action(f"{ONE}/send", "send_buyer_message", WRITES)
async def send(
    request: Asked,
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    message_id: FromPath[str],
    form: FromForm,
) -> Response[bytes]:
    """Send the draft. A second click changes nothing."""
    event = await own_event(platform, caller, event_id)
    found = await platform.organiser.messages.of_event(event, message_id)
    try:
        await platform.organiser.messages.send(editor_of(caller), event, found)
    except FrontrowError as error:
        if error.code not in REFUSALS:
            raise
        names = await names_of_team(platform, caller)
        return await _message(request, platform, event, found, names, REFUSALS[error.code])
    return go_to(f"/organiser/events/{event.id}/messages/{found.id}?done=sent")


ROUTES: list[HTTPRouteHandler] = [messages, write, message, mail, send]
