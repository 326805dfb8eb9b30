"""`/v1/me`: the account of a fan or guest: contact, devices, messages, purchases, data export and erasure."""

import hashlib
from typing import Annotated, Any, Final, Literal

import msgspec
from litestar import Request, Response, delete, get, patch, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody, QueryParameter

from frontrow.boxoffice.adapters.ledger.messages.message_book import MAX_PUSH
from frontrow.boxoffice.messages.model.messages import APP_DEVICE, Contact
from frontrow.boxoffice.messages.safe_http import check_url
from frontrow.boxoffice.people.model.email_addresses import checked_email
from frontrow.boxoffice.people.model.people import NotAllowed, PersonNotFound
from frontrow.boxoffice.people.model.person_names import MAX_NAME_CHARS, clean_name
from frontrow.core.errors import InvalidInput
from frontrow.shared.local_time import time_text
from frontrow.web.http.access import Access, Caller
from frontrow.web.http.bodies.json_values import MoneyView, Time
from frontrow.web.http.bodies.sign_in import Email, Locale, checked_locale, private
from frontrow.web.http.cookies import removed_cookie
from frontrow.web.platform.access_check import client_ip, proven_email
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform, phones_of

Channel = Literal["email", "push", "sms", "in_app"]
PHONE_PATTERN: Final = r"^(\+[1-9][0-9]{6,14})?$"
_LABEL: Final = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
PUSH_PATTERN: Final = rf"^https://({_LABEL}\.)+[a-z]{{2,20}}(:443)?/[!-\[\]-~]*$"


class Preferences(msgspec.Struct):
    """How somebody wants to be reached."""

    email: str
    phone: str
    locale: str
    channels: list[str]
    name: str = ""
    phone_proven: bool = False


class PushView(msgspec.Struct):
    """A device for push messages. Its push address is not shown."""

    id: str


class MeView(msgspec.Struct):
    id: Annotated[str, msgspec.Meta(examples=["fan_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"])]
    guest: bool
    email: str
    preferences: Preferences
    push: list[PushView]


class PreferencesChanged(msgspec.Struct, forbid_unknown_fields=True):
    """Fields that are left out stay as they are. Only a guest changes the address here; a fan proves it by a link."""

    locale: Locale | None = None
    phone: Annotated[str, msgspec.Meta(pattern=PHONE_PATTERN, examples=["+436641234567"])] | None = None
    channels: Annotated[list[Channel], msgspec.Meta(max_length=4)] | None = None
    email: Email | None = None
    name: Annotated[str, msgspec.Meta(max_length=MAX_NAME_CHARS, examples=["Ada Lovelace"])] | None = None


class PushKeys(msgspec.Struct, forbid_unknown_fields=True):
    p256dh: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    auth: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class PushAdded(msgspec.Struct, forbid_unknown_fields=True):
    """A subscription as the browser's PushManager gives it."""

    endpoint: Annotated[
        str, msgspec.Meta(max_length=2_000, pattern=PUSH_PATTERN, examples=["https://push.example.org/x"])
    ]
    keys: PushKeys
    expirationTime: float | None = None  # noqa: N815 - the browser's name


class AppAdded(msgspec.Struct, forbid_unknown_fields=True):
    """The registration token that Firebase gave to an app, on Android or on an Apple device."""

    token: Annotated[str, msgspec.Meta(min_length=20, max_length=1_000, pattern=r"^[A-Za-z0-9_:.-]+$")]


class CodeAsked(msgspec.Struct, forbid_unknown_fields=True):
    phone: Annotated[str, msgspec.Meta(pattern=PHONE_PATTERN, examples=["+436641234567"])]


class CodeTyped(msgspec.Struct, forbid_unknown_fields=True):
    code: Annotated[str, msgspec.Meta(min_length=6, max_length=20, examples=["123456"])]


class MessageView(msgspec.Struct):
    id: str
    subject: str
    body: str
    at: Time


class MessageList(msgspec.Struct):
    messages: list[MessageView]


class MyBooking(msgspec.Struct):
    id: str
    event: str
    state: str
    seat_count: int
    amount: MoneyView
    created_at: Time
    confirmed_at: Time | None


class MyBookings(msgspec.Struct):
    bookings: list[MyBooking]


class EraseAsked(msgspec.Struct, forbid_unknown_fields=True):
    """`confirm` must be `erase my data`, so that nobody does this by mistake."""

    confirm: Literal["erase my data"]


@get("/v1/me", operation_id="get_me", summary="The caller's own account", opt={"access": Access.FAN})
async def get_me(platform: FromPlatform, caller: FromCaller) -> Response[MeView]:
    return private(Response(await _me(platform, caller)))


@patch(
    "/v1/me/preferences",
    operation_id="change_preferences",
    summary="Change language, channels and phone",
    opt={"access": Access.FAN},
)
async def change_preferences(
    platform: FromPlatform, caller: FromCaller, data: JSONBody[PreferencesChanged]
) -> Response[MeView]:
    fans = platform.people.fans
    changes: dict[str, Any] = {}
    if data.email is not None:
        if caller.role != "guest":
            raise NotAllowed("sign in with a link to the other address instead")
        changes["email"] = checked_email(data.email)
    if data.name is not None:
        changes["name"] = clean_name(data.name)
    if data.phone is not None:
        changes["phone"] = data.phone
    if data.locale is not None:
        changes["locale"] = checked_locale(data.locale)
    if data.channels is not None:
        changes["channels"] = tuple(dict.fromkeys(data.channels))
    await fans.put_contact(msgspec.structs.replace(await fans.contact(caller.id), **changes))
    return private(Response(await _me(platform, caller)))


@post(
    "/v1/me/phone/code",
    operation_id="send_phone_code",
    summary="Send a code by SMS to a number of the caller's",
    status_code=204,
    opt={"access": Access.FAN, "problems": (409, 422, 429, 503)},
)
async def send_phone_code(
    platform: FromPlatform, request: Request[Any, Any, Any], caller: FromCaller, data: JSONBody[CodeAsked]
) -> None:
    fans = platform.people.fans
    locale = (await fans.contact(caller.id)).locale
    await phones_of(platform).send_code(caller.id, data.phone, client_ip(platform, request), locale)


@post(
    "/v1/me/phone",
    operation_id="confirm_phone",
    summary="Prove the number by the code; SMS may go there from now on",
    status_code=200,
    opt={"access": Access.FAN, "problems": (409,)},
)
async def confirm_phone(platform: FromPlatform, caller: FromCaller, data: JSONBody[CodeTyped]) -> Response[MeView]:
    await phones_of(platform).confirm(caller.id, data.code)
    return private(Response(await _me(platform, caller)))


@post(
    "/v1/me/apps",
    operation_id="add_app",
    summary="Send messages to this app too",
    status_code=201,
    opt={"access": Access.FAN},
)
async def add_app(platform: FromPlatform, caller: FromCaller, data: JSONBody[AppAdded]) -> PushView:
    document = msgspec.json.encode({"endpoint": f"{APP_DEVICE}{data.token}"}).decode()
    return await _add_device(platform, caller, document)


@post(
    "/v1/me/push",
    operation_id="add_push_subscription",
    summary="Send messages to this device too",
    status_code=201,
    opt={"access": Access.FAN},
)
async def add_push(platform: FromPlatform, caller: FromCaller, data: JSONBody[PushAdded]) -> PushView:
    check_url(data.endpoint)  # the address behind its name is checked with every delivery
    document = msgspec.json.encode({"endpoint": data.endpoint, "keys": data.keys}).decode()
    return await _add_device(platform, caller, document)


async def _add_device(platform: Platform, caller: Caller, document: str) -> PushView:
    contact = await platform.people.fans.contact(caller.id)
    others = [one for one in contact.push if _push_id(one) != _push_id(document)]
    if len(others) >= MAX_PUSH:
        raise InvalidInput(f"a person has at most {MAX_PUSH} devices for push", param="endpoint")
    await platform.people.fans.put_contact(msgspec.structs.replace(contact, push=(*others, document)))
    return PushView(_push_id(document))


@delete(
    "/v1/me/push/{push_id:str}",
    operation_id="remove_push_subscription",
    summary="Stop sending to a device",
    status_code=204,
    opt={"access": Access.FAN},
)
async def remove_push(platform: FromPlatform, caller: FromCaller, push_id: FromPath[str]) -> None:
    contact = await platform.people.fans.contact(caller.id)
    others = tuple(one for one in contact.push if _push_id(one) != push_id)
    if len(others) == len(contact.push):
        raise PersonNotFound("you have no such device", push=push_id[:60])
    await platform.people.fans.put_contact(msgspec.structs.replace(contact, push=others))


@get(
    "/v1/me/messages",
    operation_id="list_my_messages",
    summary="The caller's messages, newest first",
    opt={"access": Access.FAN},
)
async def list_messages(
    platform: FromPlatform, caller: FromCaller, limit: Annotated[int, QueryParameter(ge=1, le=500)] = 50
) -> Response[MessageList]:
    found = await platform.people.fans.messages(caller.id, limit)
    rows = [MessageView(one.id, one.subject, one.body, time_text(one.created_at_us)) for one in found]
    return private(Response(MessageList(rows)))


@get(
    "/v1/me/bookings",
    operation_id="list_my_bookings",
    summary="The caller's purchases, newest first",
    opt={"access": Access.FAN},
)
async def list_bookings(platform: FromPlatform, caller: FromCaller) -> Response[MyBookings]:
    rows = [
        MyBooking(
            one.id,
            one.event_id,
            one.state.value,
            len(one.seats),
            MoneyView(one.amount_minor, one.currency),
            time_text(one.created_at_us),
            time_text(one.confirmed_at_us) if one.confirmed_at_us else None,
        )
        for one in await platform.people.fans.bookings(caller.id)
    ]
    return private(Response(MyBookings(rows)))


@get(
    "/v1/me/export",
    operation_id="export_my_data",
    summary="Everything stored about the caller, as a file",
    opt={"access": Access.FAN},
)
async def export(platform: FromPlatform, caller: FromCaller) -> Response[dict[str, Any]]:
    kept = msgspec.to_builtins(await platform.people.fans.export(caller.id))
    kept["sign_ups"] = msgspec.to_builtins(
        await platform.presale.signups.of_address(await proven_email(platform, caller))
    )
    answer = private(Response(kept))
    answer.headers["content-disposition"] = 'attachment; filename="frontrow-my-data.json"'
    return answer


@post(
    "/v1/me/erase",
    operation_id="erase_my_data",
    summary="Erase the caller's personal data; purchases stay as anonymous records",
    status_code=204,
    opt={"access": Access.FAN, "idempotency": "own"},
)
async def erase(platform: FromPlatform, caller: FromCaller, data: JSONBody[EraseAsked]) -> Response[None]:
    await platform.people.fans.erase(caller.id)
    return private(Response(None, status_code=204, cookies=[removed_cookie()]))


async def _me(platform: Platform, caller: Caller) -> MeView:
    fan = await platform.people.fans.fan(caller.id)
    contact: Contact = await platform.people.fans.contact(caller.id)
    wants = Preferences(
        contact.email, contact.phone, contact.locale, list(contact.channels), contact.name, contact.takes_sms
    )
    devices = [PushView(_push_id(document)) for document in contact.push]
    return MeView(fan.id, caller.role == "guest", fan.email, wants, devices)


def _push_id(document: str) -> str:
    endpoint = str(msgspec.json.decode(document)["endpoint"])
    return "psh_" + hashlib.sha256(endpoint.encode()).hexdigest()[:24]


ROUTES: list[HTTPRouteHandler] = [
    get_me,
    change_preferences,
    send_phone_code,
    confirm_phone,
    add_app,
    add_push,
    remove_push,
    list_messages,
    list_bookings,
    export,
    erase,
]
