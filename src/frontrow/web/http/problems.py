"""Errors over HTTP: RFC 9457 problem+json with stable codes.

An error class has its code and status, and its body is made from them (`core.errors`). `PROBLEMS` lists every code
with its status and what to do about it. docs/errors.md is generated from it, and a test compares it with every error
class that a handler can raise. The framework's own errors get their code from `FRAMEWORK_CODES`.
"""

import logging
from typing import Any, Final, NamedTuple

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException

from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.web.http.messages import EndpointResponse, problem_answer

log = logging.getLogger("frontrow.web")


class Advice(NamedTuple):
    """One row of the table: the status of a code, and what its receiver can do."""

    status: int
    what_to_do: str


PROBLEMS: Final[dict[str, Advice]] = {
    "bad_request": Advice(400, "Send what the API documentation describes."),
    "missing_client_id": Advice(400, "Identify yourself as the limit's rule describes."),
    "uncountable_request": Advice(400, "Send a cost or a key that the limit can count."),
    "bad_signature": Advice(401, "Sign the notice with the webhook secret and a current timestamp."),
    "hand_over_invalid": Advice(401, "Go through the waiting room again, in the browser that waited there."),
    "pass_expired": Advice(401, "Join the waiting room again."),
    "pass_invalid": Advice(401, "Send the pass exactly as the room issued it, or join the room again."),
    "pass_required": Advice(401, "Join the waiting room and claim a pass."),
    "person_needed": Advice(401, "Sign in: each person has one place in this queue."),
    "place_invalid": Advice(401, "Join the room to get a place."),
    "proof_invalid": Advice(401, "Sign the claim with the key the place was bound to."),
    "sign_in_needed": Advice(401, "Sign in, or send an API key."),
    "unauthorised": Advice(401, "Send a valid pass, session, API key or booking token."),
    "wrong_credentials": Advice(401, "Check the address, the password and the code."),
    "card_mistyped": Advice(402, "Correct the card number, date or security code and pay again; the seats are held."),
    "payment_declined": Advice(402, "Pay with another card while `tries_left` is above 0, or choose seats again."),
    "code_invalid": Advice(403, "Check the Verified-Fan code."),
    "code_needed": Advice(403, "Join with a presale code, or come back at `general_sale_at_s`."),
    "cross_site": Advice(403, "Send requests from our own pages, with the session's CSRF token."),
    "forbidden": Advice(403, "Ask someone whose role allows it."),
    "human_check_failed": Advice(403, "Get a new challenge and solve it."),
    "not_allowed": Advice(403, "Ask someone whose role allows it."),
    "pass_foreign": Advice(403, "Use a pass of this event's room."),
    "pass_of_another": Advice(403, "Use your own pass."),
    "place_foreign": Advice(403, "Use a place of this event's room."),
    "second_factor_needed": Advice(403, "Send the code, or set up the second factor first."),
    "storm_refused": Advice(403, "Make a token with `frontrow storm-token` where the server's secret key is."),
    "dead_letter_not_found": Advice(404, "Check the number in the list of dead letters."),
    "buyer_message_not_found": Advice(404, "Check the id of the message, and the event."),
    "booking_not_found": Advice(404, "Check the id, and send the booking token."),
    "delivery_not_found": Advice(404, "Check the number in the list of deliveries."),
    "event_not_found": Advice(404, "Check the id; drafts are not shown."),
    "link_spent": Advice(404, "Request a new link."),
    "not_found": Advice(404, "Check the address and the ids in it."),
    "offer_not_found": Advice(404, "Check the id; only its owner sees an offer."),
    "payment_not_found": Advice(404, "Check the id."),
    "person_not_found": Advice(404, "Check the id; the person may have been deleted."),
    "presale_not_found": Advice(404, "Check the event; it may have no registration."),
    "refund_not_found": Advice(404, "Check the booking's refunds."),
    "room_unknown": Advice(404, "Check the event's id; it may not be on sale."),
    "signup_not_found": Advice(404, "Use the complete link from the email."),
    "ticket_not_found": Advice(404, "Check the booking's tickets; a returned ticket no longer exists."),
    "transfer_not_found": Advice(404, "Use the complete link from the email."),
    "venue_not_found": Advice(404, "Check the id."),
    "waitlist_entry_not_found": Advice(404, "Join the waitlist first."),
    "webhook_not_found": Advice(404, "Check the id; the webhook may have been removed."),
    "method_not_allowed": Advice(405, "Use one of the methods in `Allow`."),
    "already_claimed": Advice(409, "Use the pass you got, or repeat with the same Idempotency-Key."),
    "already_member": Advice(409, "Sign in with the existing account of this address."),
    "already_waiting": Advice(409, "Leave the waitlist before joining with another wish."),
    "cap_reached": Advice(409, "Choose fewer seats; the event says how many one person may have."),
    "changed_by_another": Advice(409, "Load it again, then make your change."),
    "code_over": Advice(409, "The presale has ended: join without a code."),
    "code_used": Advice(409, "Use another code; each code works once."),
    "discount_refused": Advice(409, "Correct the code or leave it out; `reason` says why it changes nothing."),
    "draw_refused": Advice(409, "Draw once registration has closed."),
    "event_move_refused": Advice(409, "Check the event's status; the detail says what is possible."),
    "fixed_once_published": Advice(409, "Create a new event, or leave this field unchanged."),
    "hand_over_used": Advice(409, "Go back to the waiting room; it issues another one while the visit lasts."),
    "hold_cannot_be_extended": Advice(409, "Pay now, or hold again."),
    "idempotency_mismatch": Advice(409, "Use a new Idempotency-Key for another request."),
    "idempotency_running": Advice(409, "Retry after `Retry-After`."),
    "last_owner": Advice(409, "Make another member an owner first."),
    "lonely_seat": Advice(409, "Move your selection by one seat, so that no single seat is left."),
    "move_refused": Advice(409, "Check the booking's state; steps cannot be skipped."),
    "name_taken": Advice(409, "Choose another name; a room's name is used once, also after the room was deleted."),
    "newer_version": Advice(409, "Update this server; a newer one has changed this."),
    "no_priority": Advice(409, "Join the waiting room."),
    "no_recipients": Advice(409, "Choose another audience: nobody there has both a valid ticket and an address."),
    "no_wallet_pass": Advice(409, "Show the ticket in the browser or as PDF; `reason` says why there is none."),
    "no_such_seats": Advice(409, "Ask for fewer seats, other sections, or join the waitlist."),
    "none_left": Advice(409, "Choose fewer, or leave it out; `left` says how many there are."),
    "booking_disputed": Advice(409, "Wait until the buyer's bank has decided; a refund would pay the money twice."),
    "country_not_served": Advice(409, "Use a number of another country, or messages by mail and push."),
    "phone_stopped": Advice(409, "Text START to our number from this phone, then ask for a code again."),
    "sms_off": Advice(409, "Choose mail or push; this server sends no text messages."),
    "wrong_phone_code": Advice(409, "Type the code of the newest text message, or ask for another one."),
    "not_on_sale": Advice(409, "Come back when the sale is open; `reason` says why it is not."),
    "not_returnable": Advice(409, "Return sold seats only, while the sale lasts."),
    "not_waiting": Advice(409, "Join the waitlist first."),
    "not_your_turn": Advice(409, "Wait for `Retry-After`; the place keeps its position."),
    "notice_refused": Advice(409, "Join the queue; `reason` says why there is no opening to wait for."),
    "other_browser": Advice(409, "Open the link in the browser that requested it, or send it again with `confirmed`."),
    "pass_ended": Advice(409, "Join again; the visit was ended."),
    "paid_at_box_office": Advice(409, "Return the tickets at the box office, where they were paid."),
    "payment_not_taken": Advice(409, "Ask again in a moment; an invoice is issued once the money is taken."),
    "payment_changed": Advice(409, "Load the booking again."),
    "payment_on_its_way": Advice(409, "Wait for the money, or release the seats: it is refunded when it comes."),
    "seller_cannot_be_paid": Advice(409, "Try again later; the organiser's account takes no payments at the moment."),
    "presale_fixed": Advice(409, "Keep the order and the lane: people registered under them, and a draw is final."),
    "nothing_to_invoice": Advice(409, "Nothing was paid for this booking, so there is nothing to invoice."),
    "invoice_not_found": Advice(404, "Check the number; the list of invoices has them all."),
    "refund_refused": Advice(409, "Ask the organiser; the event's refund policy does not allow it."),
    "refused": Advice(409, "Read the detail; repeating the request changes nothing."),
    "registration_closed": Advice(409, "Check the presale's times; `reason` says why."),
    "email_change_refused": Advice(409, "Ask the buyer to change it in their account, or to contact support."),
    "reentry_not_allowed": Advice(409, "Allow re-entry in the event's settings, or scan nobody at the exit."),
    "reseat_refused": Advice(409, "Choose free seats of the same price."),
    "room_closed": Advice(409, "Ask the organiser; the room is closed."),
    "rules_are_set": Advice(409, "Use the existing rules; a waitlist's rules are set once."),
    "seal_broken": Advice(409, "Start the set-up again."),
    "seats_not_in_booking": Advice(409, "Name seats of this booking."),
    "seats_still_free": Advice(409, "Choose them now instead of waiting."),
    "seats_taken": Advice(409, "Choose others; `seats` names the taken ones."),
    "seats_withheld": Advice(409, "Choose others; these are not for sale."),
    "stale_fence": Advice(409, "Load the booking; a newer hold exists."),
    "stay_too_long": Advice(409, "Join the waiting room again."),
    "ticket_revoked": Advice(409, "Ask the buyer for a valid ticket; this one was cancelled or returned."),
    "ticket_scanned": Advice(409, "Undo the admission at the gate first; somebody is inside with this ticket."),
    "ticket_transferred": Advice(409, "Return your other tickets; this one belongs to the person it was sent to."),
    "transfer_refused": Advice(409, "Ask the sender, or the organiser; `reason` says why."),
    "too_many_endpoints": Advice(409, "Remove a webhook of this event first."),
    "too_many_messages": Advice(409, "Try again tomorrow, or put what is left into one message."),
    "visit_ended": Advice(409, "Join the waiting room again; a visit ends when it has bought tickets."),
    "hold_ended": Advice(410, "Choose seats again; any amount reserved on the card is released."),
    "offer_over": Advice(410, "Stay on the waitlist for the next offer."),
    "place_expired": Advice(410, "Join again."),
    "changed_meanwhile": Advice(412, "Read it again, then make your change with the new ETag."),
    "body_too_large": Advice(413, "Send a smaller body."),
    "wrong_sign_in_code": Advice(422, "Look at the mail again, or request a new one; a code has five tries."),
    "too_large": Advice(422, "Give less at once: fewer seats, or a smaller file."),
    "picture_too_large": Advice(413, "Send a file of at most 10 MB and 50 megapixels."),
    "unsupported_media_type": Advice(415, "Send the body as application/json."),
    "bad_plan": Advice(422, "Correct the plan; the detail names the place."),
    "bad_seat_map": Advice(422, "Send a complete seat map."),
    "bad_table": Advice(422, "Correct the table; the detail names the line."),
    "duplicate_seats": Advice(422, "Name each seat once."),
    "invalid_input": Advice(422, "Correct the field named by `param`."),
    "unknown_seats": Advice(422, "Use seat ids from the event's map."),
    "unsafe_address": Advice(422, "Give a public https address."),
    "wrong_seat_count": Advice(422, "Ask for at least one seat and at most the number a request allows."),
    "rate_limited": Advice(429, "Wait for `Retry-After`; retrying more often does not help."),
    "throttled": Advice(429, "Wait for `Retry-After`."),
    "too_many_tries": Advice(429, "Wait for `Retry-After`, then retry."),
    "head_too_large": Advice(431, "Send fewer or shorter headers and cookies."),
    "error": Advice(500, "Retry later; the error has been logged."),
    "provider_error": Advice(502, "Retry; nothing is charged twice."),
    "provider_refused": Advice(502, "Pay another way; the provider's reason is in the detail."),
    "provider_unknown": Advice(502, "Check the booking; it continues automatically."),
    "claims_rebuilding": Advice(503, "Retry after `Retry-After`; nothing is sold in the meantime."),
    "deadline": Advice(503, "Retry with the same Idempotency-Key; the first request may have been carried out."),
    "limit_store_down": Advice(503, "Retry after `Retry-After`."),
    "not_ready": Advice(503, "Use another server."),
    "overloaded": Advice(503, "Retry after `Retry-After`."),
    "provider_spared": Advice(503, "Retry shortly; your seats are still held."),
    "room_full": Advice(503, "Claim again after `Retry-After`; the place stays active."),
    "room_held": Advice(503, "Claim again after `Retry-After`; the place stays active."),
    "room_overflow": Advice(503, "Come back later; the queue is full."),
    "room_recovering": Advice(503, "Retry after `Retry-After`; nobody loses a place."),
    "sms_not_sent": Advice(503, "Ask for a code again after `Retry-After`; the one before is void."),
    "streams_full": Advice(503, "Poll the address in `poll`, and retry the stream after `Retry-After`."),
    "too_many_viewers": Advice(503, "Poll the same figures, or retry after `Retry-After`."),
    "unavailable": Advice(503, "Retry after `Retry-After`."),
}
# The code of an error that the framework raises itself, by its status.
FRAMEWORK_CODES: Final = {
    400: "bad_request",
    401: "unauthorised",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "refused",
    413: "body_too_large",
    415: "unsupported_media_type",
    422: "invalid_input",
    429: "rate_limited",
    500: "error",
    503: "overloaded",
}


def table() -> str:
    """The table as Markdown: docs/errors.md."""
    rows = sorted(PROBLEMS.items(), key=lambda one: (one[1].status, one[0]))
    lines = [f"| {row.status} | `{code}` | {title_of(code)} | {row.what_to_do} |" for code, row in rows]
    head = (
        "# Errors\n\nEvery error is `application/problem+json` (RFC 9457) with a stable `code`. This page is generated"
        " from the table\nin `frontrow.web.http.problems`; `frontrow.web.http.problems.table()` writes it.\n\n"
        "| status | code | title | what to do |\n|---|---|---|---|\n"
    )
    return head + "\n".join(lines) + "\n"


def title_of(code: str) -> str:
    """The title of an error's body: its code in words."""
    return code.replace("_", " ").capitalize()


class Problem(msgspec.Struct, omit_defaults=True):
    """The body of every error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    param: str = ""


class HttpProblem(FrontrowError):
    """An error that the framework raises itself: unknown path, wrong method, a body that does not match."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.http_status = status  # type: ignore[misc]
        self.code = FRAMEWORK_CODES.get(status, "bad_request")  # type: ignore[misc]

    def problem(self) -> dict[str, Any]:
        return super().problem() | {"title": title_of(self.code)}


def on_problem(request: Request[Any, Any, Any], error: FrontrowError) -> Response[bytes]:
    return response(problem_answer(error))


def on_http_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """The framework's own errors. The client learns what is wrong with its body, but nothing about the server."""
    detail = error.detail
    extra = error.extra if isinstance(error.extra, list) else []
    problem = HttpProblem(error.status_code, detail)
    if error.status_code == 400 and extra:
        problem = HttpProblem(422, str(extra[0].get("message", detail)))
        problem.param = str(extra[0].get("key", "")) or None
    answer = response(problem_answer(problem))
    for name, value in (error.headers or {}).items():
        answer.headers[name] = value.replace("GET,", "GET, HEAD,") if name.lower() == "allow" else value
    return answer


def on_unreadable_body(request: Request[Any, Any, Any], error: RecursionError | UnicodeDecodeError) -> Response[bytes]:
    """The framework reads any JSON: nested a thousand levels deep, or not in UTF-8. Nothing of ours is either."""
    log.warning("a body could not be read", exc_info=error)
    why = "nested too deeply" if isinstance(error, RecursionError) else "not UTF-8"
    return response(problem_answer(InvalidInput(f"the body is {why}", param="body")))


def on_bug(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    log.error("a handler failed", exc_info=error)
    return response(problem_answer(FrontrowError("this is our fault; it has been logged")))


def response(answer: EndpointResponse) -> Response[bytes]:
    """An `EndpointResponse` as Litestar sends it."""
    pairs = answer.headers()
    kind = next((value for name, value in pairs if name == "content-type"), "application/json")
    headers = {name: value for name, value in pairs if name != "content-type"}
    return Response(answer.body, status_code=answer.status, headers=headers, media_type=kind)
