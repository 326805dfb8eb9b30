"""The visitor's account: signing in by emailed link, preferences, erasure, and details filled in while waiting."""

import re
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from frontrow.boxoffice.messages.phone_proofs import WrongPhoneCode
from frontrow.boxoffice.people.model.email_addresses import is_email
from frontrow.boxoffice.people.model.people import OtherBrowser
from frontrow.boxoffice.people.model.person_names import clean_name
from frontrow.boxoffice.people.sessions import SignedIn
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError, Unavailable
from frontrow.waitingroom.protect.guard import is_plain
from frontrow.web.http.access import Access, Caller
from frontrow.web.http.bodies.sign_in import agent_of
from frontrow.web.http.cookies import SIGN_IN_COOKIE, cookie_header, session_cookie, sign_in_cookie
from frontrow.web.platform.access_check import client_ip
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform, phones_of
from frontrow.web.site.cookie_contents import Ready, forget_person, language_cookie, ready_cookie, ready_of
from frontrow.web.site.fans.email_fields import BAD_EMAIL, email_problem
from frontrow.web.site.fans.push import PUSHES, push_key
from frontrow.web.site.form_answers import forget_told, tell, told
from frontrow.web.site.languages import LANGUAGES, N_
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import Form, FromForm, action, go_to, page
from frontrow.web.site.security_headers import PLAIN

Asked = Request[Any, Any, Any]
ERASE_WORDS: Final = N_("erase my data")  # nobody does this by mistake
PHONE: Final = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
CHANNELS: Final = {"email": N_("Email"), "sms": N_("Text message (SMS)"), "push": N_("Notification on my devices")}
SPENT: Final = N_("This link was used or has expired. Request a new one.")
REFUSALS: Final = {
    "wrong_sign_in_code": N_("This code is not right. Look at the email again, or request a new one."),
    "too_many_tries": N_("Too many tries. Please wait a few minutes."),
}
PHONE_FORM: Final = N_("A phone number is like +436641234567.")
PHONE_REFUSALS: Final = {
    "invalid_input": PHONE_FORM,
    "phone_stopped": N_("This number gets no text messages. Text START to our number to get them again."),
    "country_not_served": N_("We send no text messages to this country."),
    "too_many_tries": REFUSALS["too_many_tries"],
    "sms_not_sent": N_("The text message could not be sent. Try again in a minute."),
    "sms_off": N_("We send no text messages at the moment."),
    "wrong_phone_code": N_("This code is not right. Look at the text message again, or request a new one."),
}


def back_of(text: str, default: str = "/tickets") -> str:
    return text if is_plain(text) else default


@page("/sign-in", "sign_in")
async def sign_in(request: Asked, platform: FromPlatform) -> Response[bytes]:
    """The form that requests a link. The link itself opens this page too (its secret is behind `#`)."""
    back, said = back_of(request.query_params.get("back", "")), told(request)
    response = render(
        request,
        "sign-in.html",
        status=said.status,
        script="js/sign-in.js",
        back=back,
        sent=said.text("sent"),
        problem=said.text("problem"),
        email=said.text("email"),
        confirm=said.text("confirm"),
        link=said.text("link"),
    )
    if said.text("link"):  # it opens the account, so no address shows it again
        forget_told(platform, response)
    return response


@action("/sign-in", "ask_link")
async def ask_link(request: Asked, platform: FromPlatform, form: FromForm) -> Response[bytes]:
    """Send the link; the same answer whether the address is known or not."""
    email, back = form.one("email", 254), back_of(form.one("back"))
    if problem := email_problem(email):
        return _again(request, back, problem, email, 422)
    try:
        ip, language = client_ip(platform, request), words_for(request).language
        ask = await platform.people.fans.send_sign_in_link(email, ip, language, back)
    except Unavailable:
        raise
    except FrontrowError as error:
        return _again(request, back, REFUSALS.get(error.code, BAD_EMAIL), email, error.http_status)
    life_s = platform.settings.people.link_life_s
    headers = {"set-cookie": cookie_header(sign_in_cookie(ask, life_s))}
    return tell(request, _sign_in_page(back), {"sent": email, "email": email}, headers=headers)


def _again(request: Asked, back: str, problem: str, email: str, status: int) -> Response[bytes]:
    return tell(request, _sign_in_page(back), {"problem": problem, "email": email}, status=status)


def _sign_in_page(back: str) -> str:
    return f"/sign-in?{urlencode({'back': back})}"


@action("/sign-in/redeem", "redeem_link")
async def redeem(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Sign in with the link's secret; what this browser bought with that address becomes the fan's. A link that another
    browser asked for needs a confirmation."""
    link, back = form.one("link", 400).rpartition("#")[2], back_of(form.one("back"))
    try:
        signed_in = await platform.people.fans.redeem_link(
            link, _ask_of(request), confirmed=form.one("confirmed") == "yes", **_who(request, caller)
        )
    except OtherBrowser as error:
        return tell(request, _sign_in_page(back), {"confirm": str(error.about.get("email", "")), "link": link})
    except Unavailable:
        raise
    except FrontrowError as error:
        return _again(request, back, REFUSALS.get(error.code, SPENT), "", error.http_status)
    return _welcome(signed_in, back)


@action("/sign-in/code", "redeem_code")
async def redeem_code(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Sign in with the six digits of the mail, in the browser that asked for it."""
    back, email = back_of(form.one("back")), form.one("email", 254)
    try:
        signed_in = await platform.people.fans.redeem_code(
            form.one("code", 40), _ask_of(request), client_ip(platform, request), **_who(request, caller)
        )
    except Unavailable:
        raise
    except FrontrowError as error:
        problem = REFUSALS.get(error.code, SPENT)
        sent = email if error.code == "wrong_sign_in_code" else ""
        says = {"problem": problem, "email": email, "sent": sent}
        return tell(request, _sign_in_page(back), says, status=error.http_status)
    return _welcome(signed_in, back)


def _ask_of(request: Asked) -> str:
    return str(request.cookies.get(SIGN_IN_COOKIE, ""))


def _who(request: Asked, caller: Caller) -> dict[str, Any]:
    return {"agent": agent_of(request), "replaces": caller.session, "locale": words_for(request).language}


def _welcome(signed_in: SignedIn, back: str) -> Response[bytes]:
    """To the page that was wanted, with the new session."""
    life_s = max(0, signed_in.session.ends_at_us - signed_in.session.created_at_us) // US_PER_S
    cookie = cookie_header(session_cookie(signed_in.secret, life_s))
    return go_to(back, {"set-cookie": cookie})


@action("/sign-out", "sign_out")
async def sign_out(platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """End this session; the next person at this browser sees nothing of the last one."""
    if caller.session is not None:
        await platform.people.sessions.end(caller.session.subject, caller.session.id)
    response = go_to("/")
    forget_person(caller, response)
    return response


@page("/account", "account", Access.FAN)
async def account(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """Preferences (language, channels, phone), messages, data export and erasure."""
    return await _account(request, platform, caller)


async def _account(
    request: Asked, platform: Platform, caller: Caller, *, problem: str = "", saved: bool = False
) -> Response[bytes]:
    fans, phones = platform.people.fans, phones_of(platform)
    contact, said = await fans.contact(caller.id), told(request)
    addresses = [one for one in (("email", contact.email), ("sms", contact.phone)) if one[1]]
    blocked = await platform.ledger.messages.blocked(addresses)
    return render(
        request,
        "account.html",
        script="js/push.js" if (key := push_key(platform)) else "",
        push_key=key,
        policy=PUSHES if key else PLAIN,
        status=422 if problem else said.status,
        fan=await fans.fan(caller.id),
        contact=contact,
        channels={name: label for name, label in CHANNELS.items() if name != "sms" or phones.offered},
        sms=phones.offered,
        code_sent=said.text("code_sent"),
        email_blocked=("email", contact.email) in blocked,
        phone_blocked=("sms", contact.phone) in blocked,
        problem=problem or said.text("problem"),
        saved=saved,
        messages=await fans.messages(caller.id, 20),
        erase_words=words_for(request)(ERASE_WORDS),
    )


@action("/account", "change_account", Access.FAN)
async def change(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Save the preferences."""
    phone = re.sub(r"[ ()/-]", "", form.one("phone", 30))
    if phone and not PHONE.fullmatch(phone):
        return await _account(request, platform, caller, problem=PHONE_FORM)
    await platform.people.fans.put_contact(_changed(await platform.people.fans.contact(caller.id), form, phone))
    language = form.one("language", 2)
    headers = {}
    if language in LANGUAGES:
        headers["set-cookie"] = language_cookie(platform, language)
    return go_to("/account", headers)


def _changed(contact: Any, form: Form, phone: str) -> Any:
    chosen = tuple(name for name in CHANNELS if name in form.all("channel"))
    language = form.one("language", 2)
    locale = language if language in LANGUAGES else contact.locale
    name = clean_name(form.one("name", 120)) or contact.name
    return msgspec.structs.replace(contact, name=name, phone=phone, channels=(*chosen, "in_app"), locale=locale)


@action("/account/phone", "send_phone_code_form", Access.FAN)
async def send_phone_code(
    request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm
) -> Response[bytes]:
    """Send a code to the number of the preferences."""
    contact = await platform.people.fans.contact(caller.id)
    try:
        await phones_of(platform).send_code(
            caller.id, contact.phone, client_ip(platform, request), words_for(request).language
        )
    except FrontrowError as error:
        if error.code not in PHONE_REFUSALS:
            raise
        return tell(request, "/account", {"problem": PHONE_REFUSALS[error.code]}, status=error.http_status)
    return tell(request, "/account", {"code_sent": contact.phone})


@action("/account/phone/code", "confirm_phone_form", Access.FAN)
async def confirm_phone(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Prove the number by the code, and choose SMS with it."""
    fans = platform.people.fans
    try:
        phone = await phones_of(platform).confirm(caller.id, form.one("code", 20))
    except WrongPhoneCode as error:
        says = {"problem": PHONE_REFUSALS["wrong_phone_code"]}
        if not error.about.get("over"):
            says["code_sent"] = (await fans.contact(caller.id)).phone
        return tell(request, "/account", says, status=error.http_status)
    contact = await fans.contact(caller.id)
    if phone and "sms" not in contact.channels:
        await fans.put_contact(msgspec.structs.replace(contact, channels=(*contact.channels, "sms")))
    return go_to("/account")


@action("/account/erase", "erase", Access.FAN)
async def erase(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Erase this person's data."""
    if form.one("confirm").casefold() != words_for(request)(ERASE_WORDS).casefold():
        return await _account(request, platform, caller, problem=N_("The words did not match. Nothing was deleted."))
    await platform.people.fans.erase(caller.id)
    response = go_to("/")
    forget_person(caller, response)
    return response


@page("/ready", "ready")
async def ready(request: Asked, platform: FromPlatform) -> Response[bytes]:
    """Name and email address, filled in while waiting; kept in this browser only."""
    said = told(request)
    typed = Ready(said.text("name"), said.text("email")) if said.says else ready_of(platform, request)
    return render(
        request,
        "ready.html",
        status=said.status,
        ready=typed,
        back=back_of(request.query_params.get("back", ""), "/"),
        bad=said.text("bad"),
    )


@action("/ready", "keep_ready")
async def keep_ready(request: Asked, platform: FromPlatform, form: FromForm) -> Response[bytes]:
    """Save the details and return to the queue."""
    filled, back = Ready(form.one("name", 120), form.one("email", 254)), back_of(form.one("back"), "/")
    if filled.email and not is_email(filled.email):
        page = f"/ready?{urlencode({'back': back})}"
        return tell(request, page, {"name": filled.name, "email": filled.email, "bad": BAD_EMAIL}, status=422)
    return go_to(back, {"set-cookie": ready_cookie(platform, filled)})


ROUTES: list[HTTPRouteHandler] = [
    sign_in,
    ask_link,
    redeem,
    redeem_code,
    sign_out,
    account,
    change,
    send_phone_code,
    confirm_phone,
    erase,
    ready,
    keep_ready,
]
