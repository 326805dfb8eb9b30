"""Messages to the people who have tickets (B13, B15): preview, send, follow."""

from typing import Annotated

import msgspec
from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.messages.buyer_messages import MessagePreview
from frontrow.boxoffice.messages.model.buyer_messages import (
    MAX_PER_DAY,
    MAX_SUBJECT_CHARS,
    MAX_TEXT_CHARS,
    Audience,
    AudienceKind,
    BuyerMessage,
)
from frontrow.shared.local_time import time_text
from frontrow.web.api.organiser.parameters import NO_STORE, Cursor, Limit
from frontrow.web.http.access import Access, editor_of
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.http.cursors import next_of, read_number
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform

ALL = "/v1/organiser/events/{event_id:str}/messages"
WRITES = Access.staff("messages:write")


class AudienceBody(msgspec.Struct, forbid_unknown_fields=True):
    """Who gets a message: `all`, or one `section`, price `tier` or `booking`, named by `key`."""

    kind: AudienceKind = AudienceKind.ALL
    key: Annotated[str, msgspec.Meta(max_length=100, examples=["A"])] = ""


class BuyerMessageAsk(msgspec.Struct, forbid_unknown_fields=True):
    """What to send. `text` is light Markdown. Both may contain {name}, {event}, {date} and {booking}."""

    subject: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_SUBJECT_CHARS, examples=["Another entrance"])]
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TEXT_CHARS, examples=["Please use gate **B**."])]
    audience: AudienceBody = msgspec.field(default_factory=AudienceBody)


class BuyerMessagePreview(msgspec.Struct):
    """How many addresses would get the message, and the mail as `to`, one of them, would get it."""

    recipients: int
    without_address: int
    to: str
    subject: str
    text: str
    html: str
    reply_to: str


class BuyerMessageView(msgspec.Struct):
    """A message and how far it is. `skipped` had no valid ticket any more when it was their turn."""

    message: str
    state: Annotated[str, msgspec.Meta(examples=["sending"])]
    audience: AudienceBody
    subject: str
    text: str
    sent_by: str
    created_at: Time
    recipients: int
    sent: int
    failed: int
    skipped: int
    waiting: int


class BuyerMessagePage(msgspec.Struct):
    messages: list[BuyerMessageView]
    next: str | None = None


@post(
    f"{ALL}/preview",
    operation_id="preview_buyer_message",
    summary="What a message to buyers would look like, and how many would get it. Nothing is kept or sent",
    status_code=200,
    opt={"access": WRITES, "problems": (404, 409)},
)
async def preview_buyer_message(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[BuyerMessageAsk]
) -> Response[BuyerMessagePreview]:
    event = await own_event(platform, caller, event_id)
    messages = platform.organiser.messages
    written = await messages.write(editor_of(caller), event, audience_of(data.audience), data.subject, data.text)
    found: MessagePreview = await messages.preview(event, written)
    mail = found.example
    view = BuyerMessagePreview(
        found.count.addresses,
        found.count.without_address,
        mail.contact.email,
        mail.subject,
        mail.text,
        mail.html,
        mail.reply_to,
    )
    return Response(view, headers=NO_STORE)


@post(
    ALL,
    operation_id="send_buyer_message",
    summary="Send a message to buyers. Repeat it with the same Idempotency-Key if no answer came",
    description=(
        "Only for what concerns the tickets: a changed time, another entrance, safety. No advertising: readers cannot"
        f" unsubscribe. An event sends at most {MAX_PER_DAY} messages to many people in 24 hours."
    ),
    status_code=202,
    opt={"access": WRITES, "problems": (404, 409)},
)
async def send_buyer_message(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[BuyerMessageAsk]
) -> Response[BuyerMessageView]:
    event = await own_event(platform, caller, event_id)
    editor, messages = editor_of(caller), platform.organiser.messages
    written = await messages.write(editor, event, audience_of(data.audience), data.subject, data.text)
    sending = await messages.send(editor, event, written)
    return Response(await _view(platform, sending), status_code=202, headers=NO_STORE)


@get(
    ALL,
    operation_id="list_buyer_messages",
    summary="Messages to buyers, the newest first",
    opt={"access": WRITES},
)
async def list_buyer_messages(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], cursor: Cursor = "", limit: Limit = 20
) -> Response[BuyerMessagePage]:
    event = await own_event(platform, caller, event_id)
    found = await platform.organiser.messages.sent(event, read_number(cursor), limit)
    views = [await _view(platform, one) for one in found]
    more = next_of(found, limit, found[-1].created_at_us if found else None)
    return Response(BuyerMessagePage(views, more), headers=NO_STORE)


@get(
    f"{ALL}/{{message_id:str}}",
    operation_id="get_buyer_message",
    summary="How far a message to buyers is",
    opt={"access": WRITES},
)
async def get_buyer_message(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], message_id: FromPath[str]
) -> Response[BuyerMessageView]:
    event = await own_event(platform, caller, event_id)
    message = await platform.organiser.messages.of_event(event, message_id)
    return Response(await _view(platform, message), headers=NO_STORE)


def audience_of(body: AudienceBody) -> Audience:
    """The audience; `all` has no key."""
    return Audience(body.kind, "" if body.kind is AudienceKind.ALL else body.key)


async def _view(platform: Platform, message: BuyerMessage) -> BuyerMessageView:
    mails = await platform.organiser.messages.progress(message)
    return BuyerMessageView(
        message.id,
        message.state.value,
        AudienceBody(message.audience.kind, message.audience.key),
        message.subject,
        message.text,
        message.made_by,
        time_text(message.created_at_us),
        mails.total,
        mails.sent,
        mails.failed,
        mails.skipped,
        mails.waiting,
    )


ROUTES: list[HTTPRouteHandler] = [
    preview_buyer_message,
    send_buyer_message,
    list_buyer_messages,
    get_buyer_message,
]
