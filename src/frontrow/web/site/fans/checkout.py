"""Checkout: the held seats and the time left, payment, 3-D Secure, and a page for each outcome."""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.checkout.checkout import CheckoutResult, CheckoutState
from frontrow.boxoffice.checkout.purchases import is_held
from frontrow.boxoffice.events.model.events import check_on_sale
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState, HoldEnded, MoveRefused, StaleFence
from frontrow.boxoffice.holds.model.holds import MAX_HOLD_FACTOR, ShopPass
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.payments.model.card_declines import MISTYPED
from frontrow.boxoffice.payments.model.payment_accounts import SellerCannotBePaid
from frontrow.boxoffice.payments.model.payment_methods import PaymentMethod
from frontrow.boxoffice.payments.model.payments import LATE_MONEY
from frontrow.boxoffice.people.model.email_addresses import is_email
from frontrow.boxoffice.pricing.model.booking_choices import NoneLeft
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError, InvalidInput, NotFound, Refused, Unauthorised, Unavailable
from frontrow.shared.local_time import time_text
from frontrow.web.http.access import Access, Caller
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.cookie_contents import Ready, keep_visit, ready_of, remember_booking
from frontrow.web.site.event_display import shown
from frontrow.web.site.fans.choice_form import ChoiceForm, choice_form, say_none_left
from frontrow.web.site.fans.demo_cards import SHOWN, TypedCard, method_of
from frontrow.web.site.fans.drop_in import drop_in_of
from frontrow.web.site.fans.email_fields import email_problem
from frontrow.web.site.fans.seats import pass_for
from frontrow.web.site.form_answers import Told, forget_told, tell, told
from frontrow.web.site.languages import N_, Words
from frontrow.web.site.payment_method_names import HINTS, name_of, name_of_id
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import FromForm, action, go_to, page
from frontrow.web.site.security_headers import PLAIN, STRIPE

Asked = Request[Any, Any, Any]
NO_ERRORS: Final = {"email": "", "card": "", "expiry": "", "cvc": ""}
_OUTCOME_SCRIPTS: Final = dict.fromkeys(("bank", "retrying", "awaited"), "js/outcome.js")
NO_CARD: Final = "none"
MAX_BROUGHT_CHARS: Final = 8_000  # of an answer that the fan brings back from a page of the provider
METHODS_AT_FIRST: Final = 4  # the card's fields stay near; never hides a single one
HOSTED: Final = "hosted"  # what a provider of your own gets as the method when its page is to ask the fan
MISTYPED_CARD: Final = N_(
    "Please check the card number, the expiry date and the security code. Your seats are still held."
)
NOT_PAID: Final = N_("The payment was not completed. Nothing was charged, and your seats are still held.")
CARDS: Final = frozenset({"", "card", "apple_pay", "google_pay", "link"})
DECLINED_CARD: Final = N_("Your bank declined this card. Nothing was charged, and your seats are still held.")
NOT_OFFERED: Final = N_("This way to pay is not offered any more. Please choose another one.")
PRICE_CHANGED: Final = N_("The price has changed. Please check it and press the button again.")
VISIT_OVER: Final = "visit_over"
SEATS_MAY_BE_FREE: Final = frozenset({"declined", "expired"})  # outcomes after which the same seats can be held again
# reasons of payments that the fan or a timeout ended, not a bank
ENDED_WITHOUT_BANK: Final = frozenset({"", "released", "stepped_back", "hold_ended", LATE_MONEY})


class FormOpening(msgspec.Struct):
    """`secret`: what Adyen's form is opened with, empty if it cannot be. `over`: load the page again."""

    secret: str = ""
    over: bool = False


class PaymentLook(msgspec.Struct):
    """`open`: a card may still be tried; after a decline, `says` how often. If not, load the page again."""

    open: bool
    says: str = ""


@page("/checkout/{booking_id:str}", "checkout", Access.OWNER)
async def checkout(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]
) -> Response[bytes]:
    """The page for the current state of the booking."""
    booking = await platform.own_bookings.find(caller, booking_id)
    if told(request).text("outcome") == VISIT_OVER:
        return await outcome_page(request, platform, booking, VISIT_OVER, 401)
    try:
        response = await _checkout(request, platform, caller, booking)
    except SellerCannotBePaid:
        response = await outcome_page(request, platform, booking, "cannot_be_paid", 409)
    await keep_visit(platform, request, booking, response)
    return response


async def _checkout(request: Asked, platform: Platform, caller: Caller, booking: Booking) -> Response[bytes]:
    headers = await remember_booking(platform, request, booking)
    brought = {name: value[:MAX_BROUGHT_CHARS] for name, value in request.query_params.items()}
    if booking.state is BookingState.PAYING:
        try:
            outcome = await platform.box_office.checkout.check(booking.id, booking.fence, brought)
        except HoldEnded:
            return await outcome_page(request, platform, booking, "expired", 410)
        if _is_taken_in_form(outcome, brought):
            return await outcome_page(request, platform, outcome.booking, "retrying", 200, outcome=outcome)
        return await _led_on(request, platform, outcome, headers)
    if booking.state is BookingState.HELD and booking.live(platform.clock()):
        if _uses_stripe(platform) and booking.amount_minor:
            try:
                outcome = await platform.box_office.purchases.begin(
                    booking, platform.own_bookings.need_visit(caller, booking)
                )
            except Unauthorised:
                return await outcome_page(request, platform, booking, "visit_over", 401)
            except (HoldEnded, MoveRefused):  # ended since it was read
                return await _ended(request, platform, await platform.own_bookings.find(caller, booking.id), headers)
            return await _led_on(request, platform, outcome, headers)
        return await form_page(request, platform, caller, booking, headers=headers)
    if brought:  # money may have come at the provider's page after the end: it goes back
        with contextlib.suppress(FrontrowError):
            await platform.box_office.checkout.check(booking.id, booking.fence, brought)
    return await _ended(request, platform, booking, headers)


def _uses_stripe(platform: Platform) -> bool:
    """Whether cards go into Stripe's own form, straight from the browser."""
    return platform.box_office.provider.name == "stripe"


def _is_hosted(platform: Platform) -> bool:
    """Whether people pay on a page of the provider: one that is neither Stripe nor the demo's."""
    return not _uses_stripe(platform) and not _is_demo(platform)


def _is_taken_in_form(outcome: CheckoutResult, brought: dict[str, str]) -> bool:
    """Whether the fan comes from paying this very payment in the provider's form, and the provider has not told us yet
    what came of it: nobody is asked to pay again."""
    came = bool(brought.get("sessionResult") or brought.get("redirectResult"))
    is_open = outcome.state is CheckoutState.OPEN and not outcome.problem
    return came and is_open and outcome.client_secret.partition(":")[0] == brought.get("sessionId")


async def _ended(request: Asked, platform: Platform, booking: Booking, headers: dict[str, str]) -> Response[bytes]:
    """The page of a booking that can no longer be paid, or need not be."""
    if booking.state in (BookingState.CONFIRMED, BookingState.REFUNDED):
        return go_to(f"/bookings/{booking.id}", headers)
    payments = await platform.ledger.payments.payments_of(booking.id)
    reason = payments[-1].reason if payments else ""
    if booking.state is BookingState.CANCELLED and reason in ENDED_WITHOUT_BANK:
        return await outcome_page(request, platform, booking, "released", 200)
    if reason == "provider_unavailable":
        return await outcome_page(request, platform, booking, "given_up", 503)
    if booking.state is BookingState.CANCELLED:
        return await outcome_page(request, platform, booking, "declined", 402)
    return await outcome_page(request, platform, booking, "expired", 410)


async def _led_on(
    request: Asked, platform: Platform, outcome: CheckoutResult, headers: dict[str, str]
) -> Response[bytes]:
    """The page or redirect for the current state of a payment."""
    booking = outcome.booking
    match outcome.state:
        case CheckoutState.CONFIRMED:
            return go_to(f"/bookings/{booking.id}", headers)
        case CheckoutState.ACTION:
            return await outcome_page(request, platform, booking, "bank", 200, outcome=outcome)
        case CheckoutState.AWAITED:
            return await outcome_page(request, platform, booking, "awaited", 200, outcome=outcome)
        case CheckoutState.RETRYING:
            return await outcome_page(request, platform, booking, "retrying", 200, outcome=outcome)
        case CheckoutState.DECLINED:
            return await outcome_page(request, platform, booking, "declined", 402)
        case CheckoutState.ENDED:
            return await outcome_page(request, platform, booking, "expired", 410)
        case _ if _uses_stripe(platform) and not outcome.client_secret:  # Stripe could not be asked
            return await outcome_page(request, platform, booking, "retrying", 200, outcome=outcome)
        case _:
            return await form_page(request, platform, request.state.caller, booking, headers=headers, outcome=outcome)


async def outcome_page(
    request: Asked,
    platform: Platform,
    booking: Booking,
    kind: str,
    status: int,
    *,
    outcome: CheckoutResult | None = None,
) -> Response[bytes]:
    """The page for an outcome of a checkout."""
    context = await booking_context(platform, booking)
    if kind in ("released", "expired", "declined", "given_up") and context["one"].state == "cancelled":
        kind = "event_cancelled"
    may_hold_again = kind in SEATS_MAY_BE_FREE and await _are_free(platform, request.state.caller, booking)
    stripe = kind == "bank" and _uses_stripe(platform)
    return render(
        request,
        "outcome.html",
        status=status,
        script=_OUTCOME_SCRIPTS.get(kind, ""),
        visit_of="" if kind in ("visit_over", "given_up") else booking.event_id,
        policy=STRIPE if stripe else PLAIN,
        kind=kind,
        may_hold_again=may_hold_again,
        refusal=told(request).text("refusal"),
        demo=_is_demo(platform),
        action_url=outcome.action_url if outcome else "",
        transfer=outcome.transfer if outcome else None,
        paid_with=(paid_with := outcome.payment.paid_with if outcome and outcome.payment else ""),
        asks_bank=paid_with in CARDS,
        method_name=name_of_id(paid_with),
        stripe=stripe,
        publishable=platform.settings.stripe.publishable_key,
        account=outcome.payment.account if stripe and outcome and outcome.payment else "",
        client_secret=outcome.client_secret if outcome else "",
        headers=await remember_booking(platform, request, booking),
        **context,
    )


async def _are_free(platform: Platform, caller: Caller, booking: Booking) -> bool:
    """Whether the visitor could hold the seats of an ended booking again: a visit goes on, and nobody has one of them.
    The claims themselves are asked, because the map hears of freed seats a moment later."""
    event_id, now_us = booking.event_id, platform.clock()
    if pass_for(platform, caller, event_id) is None or event_id not in platform.box_office.openings:
        return False
    try:
        check_on_sale(platform.box_office.sales.get(event_id).event, now_us)
        taken = await platform.stores.claims.states(event_id, now_us, booking.seats)
    except FrontrowError:  # not sold at the moment, or nobody knows
        return False
    return all(one.booking_id == booking.id for one in taken.values())


async def booking_context(platform: Platform, booking: Booking) -> dict[str, Any]:
    """What every page about a booking shows: the event, the seats by name, the price, the time left."""
    event = platform.box_office.openings.events.get(booking.event_id) or await platform.ledger.catalogue.event(
        booking.event_id
    )
    await platform.box_office.renderer.art.colour(event)
    hold_us = event.hold_ttl_s * US_PER_S
    longest_us = booking.created_at_us + MAX_HOLD_FACTOR * hold_us
    names = await platform.booking_views.seat_ids(booking.event_id, booking.seats)
    summary = await platform.box_office.receipts.summary(booking, event)
    prices, labels = summary.prices(), await platform.box_office.renderer.seat_labels(event)
    return {
        "booking": booking,
        "one": shown(platform, event, await platform.ledger.catalogue.venue(event.venue_id)),
        "seats": [labels.parts(name) for name in names],
        "priced": [(*labels.parts(name), prices.get(name)) for name in names],
        "summary": summary,
        "until": time_text(booking.hold_expires_at_us),
        "left_s": max(0, (booking.hold_expires_at_us - platform.clock()) // US_PER_S),
        "total_s": event.hold_ttl_s,
        "can_extend": booking.hold_expires_at_us < longest_us - US_PER_S,
    }


async def form_page(
    request: Asked,
    platform: Platform,
    caller: Caller,
    booking: Booking,
    *,
    headers: dict[str, str] | None = None,
    outcome: CheckoutResult | None = None,
) -> Response[bytes]:
    """The form to pay, after a refused one with what was typed and what was wrong with it."""
    contact, said = await platform.people.fans.contact(booking.fan), told(request)
    proven = await platform.people.fans.proven_address(booking.fan)
    typed = Ready(said.text("name"), said.text("email"))
    stripe, words = _uses_stripe(platform), words_for(request)
    choice = _choice_form(platform, booking, said)
    problem = words(_problem_text(outcome)) if outcome and outcome.problem else ""
    methods = await platform.box_office.purchases.methods(booking)
    context = await booking_context(platform, booking)
    drop_in = drop_in_of(platform, methods, context["one"])
    response = render(
        request,
        "checkout.html",
        script="js/checkout.js",
        visit_of=booking.event_id,
        status=said.status,
        policy=STRIPE if stripe else drop_in.policy if drop_in else PLAIN,
        headers=headers,
        errors=NO_ERRORS | {field: said.text(f"{field}_error") for field in NO_ERRORS},
        ready=typed if "name" in said.says else _filled_before(contact, ready_of(platform, request)),
        contact=contact,
        proven=proven,
        card=TypedCard(said.text("card"), said.text("expiry"), said.text("cvc")),
        cards=SHOWN,
        stripe=stripe,
        hosted=_is_hosted(platform),
        drop_in=drop_in,
        **shown_methods(methods),
        chosen=said.text("method") or (methods[0].id if methods else ""),
        method_error=said.text("method_error"),
        offered=outcome.payment.offered if outcome and outcome.payment else "",
        free=booking.amount_minor == 0,
        publishable=platform.settings.stripe.publishable_key,
        account=outcome.payment.account if stripe and outcome and outcome.payment else "",
        client_secret=outcome.client_secret if outcome else "",
        problem=f"{problem} {_tries_text(words, outcome)}".strip() or ("" if choice else said.text("choice_error")),
        declined=bool(problem) and outcome is not None and outcome.problem not in MISTYPED,
        choice=choice,
        **context,
    )
    if said.text("card"):  # made up, for the demo; shown once all the same
        forget_told(platform, response)
    return response


def shown_methods(methods: Sequence[PaymentMethod]) -> dict[str, Any]:
    """How the form names the methods, and what it says about them."""
    return {
        "methods": [(one.id, name_of(one), one.family.value, HINTS.get(one.family, "")) for one in methods],
        "at_first": len(methods) if len(methods) <= METHODS_AT_FIRST + 1 else METHODS_AT_FIRST,
        "hints": {one.family.value: HINTS[one.family] for one in methods if one.family in HINTS},
    }


def tell_choice_refused(
    request: Asked,
    booking: Booking,
    filled: Ready | None,
    *,
    error: str = "",
    code_error: str = "",
    code: str = "",
) -> Response[bytes]:
    """Go to the form to pay, which says what was wrong with a choice, and shows what was typed."""
    says = {"choice_error": error, "code_error": code_error, "code": code}
    typed = {"name": filled.name, "email": filled.email} if filled else {}
    return tell(request, f"/checkout/{booking.id}#choice", typed | says, status=422)


def _choice_form(platform: Platform, booking: Booking, said: Told) -> ChoiceForm | None:
    """What can be chosen for the held seats; None if nothing can."""
    try:
        sale = platform.box_office.sales.get(booking.event_id)
    except NotFound:
        return None
    found = choice_form(sale.event, sale.plan, booking)
    error, code_error = said.text("choice_error"), said.text("code_error")
    if found is None or not (error or code_error):
        return found
    return replace(found, error=error, code_error=code_error, code=said.text("code"), code_works=False)


def _problem_text(outcome: CheckoutResult) -> str:
    """What was wrong with the last card, or the last try to pay in another way, in a sentence."""
    if outcome.problem in MISTYPED:
        return MISTYPED_CARD
    paid_with = outcome.payment.paid_with if outcome.payment else ""
    return DECLINED_CARD if paid_with in CARDS else NOT_PAID


def _tries_text(words: Words, outcome: CheckoutResult | None) -> str:
    """After a declined card: how many more may be tried. Nobody is warned of a decline before there was one."""
    if outcome is None or not outcome.problem or outcome.problem in MISTYPED:
        return ""
    return words.ngettext(
        "You can try {n} more time. After that the seats go back on sale.",
        "You can try {n} more times. After that the seats go back on sale.",
        outcome.tries_left,
    )


@action("/checkout/{booking_id:str}/pay", "pay", Access.OWNER)
async def pay(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Pay with the card of the form."""
    booking = await platform.own_bookings.find(caller, booking_id)
    page = f"/checkout/{booking.id}"
    if not is_held(booking, platform.clock()):
        return go_to(page)
    try:
        visit = platform.own_bookings.need_visit(caller, booking)
    except Unauthorised:
        return tell(request, page, {"outcome": VISIT_OVER})
    if form.one("seats", 8_000) not in ("", ",".join(map(str, booking.seats))):  # changed in another tab meanwhile
        return go_to(page)
    filled = Ready(form.one("name", 120), form.one("email", 254))
    if form.one("amount", 20) not in ("", str(booking.amount_minor)):  # nobody pays another price than they saw
        return tell_choice_refused(request, booking, filled, error=words_for(request)(PRICE_CHANGED))
    proven = await platform.people.fans.proven_address(booking.fan)
    free = booking.amount_minor == 0
    if _uses_stripe(platform) and not free:  # no card number ever comes here: the form was sent without its script
        return go_to(page)
    card = TypedCard(form.one("card", 40), form.one("expiry", 20), form.one("cvc", 10))
    method = form.one("method", 40) or "card"
    is_card = method == "card"
    chosen = NO_CARD if free else HOSTED if _is_hosted(platform) else method_of(card.number) if is_card else method
    problem = "" if proven else email_problem(filled.email)
    errors = {"email": problem} if problem else {}
    if is_card and chosen not in (NO_CARD, HOSTED):
        errors |= card.errors(platform.clock())
    if errors or chosen is None:
        typed = {"name": filled.name, "email": filled.email}
        typed |= {"card": card.number, "expiry": card.expiry, "cvc": card.code, "method": method}
        return tell(request, page, typed | {f"{field}_error": text for field, text in errors.items()}, status=422)
    await keep_contact_of(request, platform, booking, filled)
    try:
        outcome = await platform.box_office.purchases.pay(booking, visit, chosen)
    except (
        HoldEnded,
        MoveRefused,
        StaleFence,
        SellerCannotBePaid,
    ):  # ended or changed since it was read: its page shows the current state
        return go_to(page)
    except InvalidInput as refused:  # offered when the page was made, and not any more
        if refused.param != "method":
            raise
        typed = {"name": filled.name, "email": filled.email, "method_error": NOT_OFFERED}
        return tell(request, page, typed, status=422)
    except NoneLeft as refused:  # a shared limit was reached meanwhile: the seats are still held
        return tell_choice_refused(request, booking, filled, error=say_none_left(words_for(request), refused))
    if outcome.state is CheckoutState.CONFIRMED:
        return go_to(f"/bookings/{booking.id}", await remember_booking(platform, request, booking))
    return go_to(page)


@action("/checkout/{booking_id:str}/contact", "keep_contact", Access.OWNER)
async def keep_contact(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Save the contact before the provider's own form is submitted, which bypasses this server."""
    booking = await platform.own_bookings.find(caller, booking_id)
    filled = Ready(form.one("name", 120), form.one("email", 254))
    if not is_email(filled.email) and not await platform.people.fans.proven_address(booking.fan):
        return Response(b"", status_code=422, media_type="text/plain")
    await keep_contact_of(request, platform, booking, filled)
    return Response(b"", status_code=200, media_type="text/plain")


async def keep_contact_of(request: Asked, platform: Platform, booking: Booking, filled: Ready) -> None:
    email = filled.email if is_email(filled.email) else ""
    fans, locale = platform.people.fans, words_for(request).language
    await fans.keep_buyer(booking, name=filled.name, email=email, locale=locale)


@action("/checkout/{booking_id:str}/open", "open_form", Access.OWNER)
async def open_form(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Open the payment of the present price for Adyen's form. The same as long as it stays open."""
    booking = await platform.own_bookings.find(caller, booking_id)
    event = await booking_context(platform, booking)
    opening = FormOpening(over=not is_held(booking, platform.clock()))
    methods = await platform.box_office.purchases.methods(booking)
    if not opening.over and drop_in_of(platform, methods, event["one"]) is not None:
        try:
            visit = platform.own_bookings.need_visit(caller, booking)
            outcome = await platform.box_office.purchases.begin(booking, visit)
        except (Unauthorised, NoneLeft, SellerCannotBePaid):  # pressing the button says so
            pass
        except (HoldEnded, MoveRefused, StaleFence):  # ended or changed since it was read
            opening = FormOpening(over=True)
        else:
            is_open = outcome.state is CheckoutState.OPEN
            opening = FormOpening(outcome.client_secret if is_open else "", over=not is_open)
    return Response(msgspec.json.encode(opening), status_code=200, media_type="application/json")


@action("/checkout/{booking_id:str}/look", "look_at_payment", Access.OWNER)
async def check_payment(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Called when the provider's form refused a card: says what that means for the seats."""
    booking = await platform.own_bookings.find(caller, booking_id)
    shown = PaymentLook(open=False)
    if booking.state is BookingState.PAYING:
        with contextlib.suppress(HoldEnded):
            outcome = await platform.box_office.checkout.check(booking.id, booking.fence)
            words = words_for(request)
            if outcome.state is CheckoutState.OPEN:
                shown = PaymentLook(open=True, says=_tries_text(words, outcome))
    return Response(msgspec.json.encode(shown), status_code=200, media_type="application/json")


@action("/checkout/{booking_id:str}/other-card", "other_card", Access.OWNER)
async def other_card(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Drop the payment that waits for the bank, keep the seats, and show the form again."""
    return await _change_hold(request, platform, caller, booking_id, platform.box_office.purchases.step_back)


def _filled_before(contact: Contact, ready: Ready) -> Ready:
    """The form's initial values: the contact of this event, else the details filled in while waiting."""
    return Ready(contact.name or ready.name, contact.email or ready.email)


@action("/checkout/{booking_id:str}/extend", "extend", Access.OWNER)
async def extend(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """More time, once."""
    return await _change_hold(request, platform, caller, booking_id, platform.box_office.purchases.extend)


async def _change_hold(
    request: Asked,
    platform: Platform,
    caller: Caller,
    booking_id: str,
    change: Callable[[Booking, ShopPass], Awaitable[object]],
) -> Response[bytes]:
    """Change the caller's hold during their visit, then show the checkout page. It tells why a change was refused."""
    booking = await platform.own_bookings.find(caller, booking_id)
    try:
        await change(booking, platform.own_bookings.need_visit(caller, booking))
    except Unauthorised:
        return tell(request, f"/checkout/{booking.id}", {"outcome": VISIT_OVER})
    except Refused:
        pass  # too late, already sold, or extended before: the page shows the current state
    return go_to(f"/checkout/{booking.id}")


@action("/checkout/{booking_id:str}/release", "release", Access.OWNER)
async def release(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Release the held seats and choose others."""
    booking = await platform.own_bookings.find(caller, booking_id)
    try:
        await platform.box_office.purchases.release(booking, platform.own_bookings.need_visit(caller, booking))
    except Unauthorised:
        return tell(request, f"/checkout/{booking.id}", {"outcome": VISIT_OVER})
    except Unavailable:
        raise
    except FrontrowError:  # being paid, or over: the page says how it stands
        return go_to(f"/checkout/{booking.id}")
    return go_to(f"/events/{booking.event_id}/seats")


@action("/checkout/{booking_id:str}/bank", "bank", Access.OWNER)
async def bank(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Demo only: what the simulated bank does. The fan answers its question or pays there (`yes`, `no`), or awaited
    money comes (`arrived`)."""
    booking = await platform.own_bookings.find(caller, booking_id)
    demo: Any = getattr(platform.box_office.provider, "inner", None)
    payments = await platform.ledger.payments.payments_of(booking.id)
    if _is_demo(platform) and payments and payments[-1].ref:
        if form.one("answer", 10) == "arrived":
            demo.finish_money(payments[-1].ref)
        else:
            demo.finish_action(payments[-1].ref, agreed=form.one("answer", 10) != "no")
    return go_to(f"/checkout/{booking.id}")


def _is_demo(platform: Platform) -> bool:
    return getattr(getattr(platform.box_office.provider, "inner", None), "finish_action", None) is not None


ROUTES: list[HTTPRouteHandler] = [
    checkout,
    pay,
    keep_contact,
    open_form,
    check_payment,
    other_card,
    extend,
    release,
    bank,
]
