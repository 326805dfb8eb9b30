"""Every page and every form, every sort of caller, by cookies: who is let in, and that no form is believed blindly.

Every page is decided here, row by row, and one that nobody decided about fails the first test. What a role may do is
decided in `callers.py`. Neither reads what the routes say of themselves.
"""

import pytest

from frontrow.web.http.cookies import SESSION_COOKIE
from tests.security.callers import may
from tests.security.route_table import Route, page_table
from tests.security.world import EVENT_ID, AsgiClient, Reached, World

pytestmark = pytest.mark.asyncio(loop_scope="session")

FORM = "application/x-www-form-urlencoded"
STAFF_PATHS = ("/organiser", "/door")
ROWS = {
    # -- everybody
    "page_events": "public",
    "page_event": "public",
    "page_seats": "public",
    "page_feed": "public",  # the secret is in its address; whose it is and what they may see, the service asks
    "page_enter": "public",  # as joining the room; the form is checked like every other
    "page_hold": "public",  # the pass is in its cookie; the form is checked like every other
    "page_waitlist": "public",
    "page_join_waitlist": "public",
    "page_answer_offer": "public",  # whose the offer is, the service asks
    "page_offer": "public",  # by its link, the session or the pass; the handler asks
    **dict.fromkeys(
        ("page_transfer", "page_accept_transfer", "page_send_received", "page_transfer_qr", "page_transfer_pdf"),
        "public",
    ),  # by the link of the mail or the proven address; the handler asks
    **dict.fromkeys(("page_transfer_ics", "page_transfer_apple_wallet", "page_transfer_google_wallet"), "public"),
    **dict.fromkeys(("page_robots", "page_sitemap", "page_sitemap_part", "page_poster"), "public"),
    **dict.fromkeys(("page_picture", "page_brand_style"), "public"),
    "page_open_link": "public",  # what is behind `#` no server sees
    "page_redeem_mail_link": "public",  # the capability is checked
    "page_ask_notice": "public",  # the address is proven by a mailed link or the session
    "page_register_presale": "public",  # likewise
    "page_confirm_sign_up": "public",  # the token is checked
    "page_do_confirm_sign_up": "public",
    "page_end_sign_up": "public",
    "page_do_end_sign_up": "public",
    "page_tickets": "public",  # of this browser, and of the session if there is one
    "page_ready": "public",
    "page_keep_ready": "public",
    "page_sign_in": "public",
    "page_ask_link": "public",
    "page_redeem_link": "public",
    "page_redeem_code": "public",
    "page_sign_out": "public",
    "page_language": "public",
    "page_docs": "public",
    "favicon": "public",
    "page_notice_asked": "public",
    "page_presale_asked": "public",
    **dict.fromkeys(
        ("page_demo", "page_demo_mails", "page_demo_mail", "page_demo_mail_html", "page_demo_mail_file"), "public"
    ),
    "page_maintenance": "public",
    "page_style_guide": "public",
    "static_file": "public",
    "page_push_worker": "public",  # scripts and a manifest without anybody's data
    "page_door_worker": "public",
    "page_door_manifest": "public",
    # -- whose booking it is
    "page_checkout": "owner",
    "page_hold_again": "owner",
    "page_pay": "owner",
    "page_open_form": "owner",
    "page_choose_tickets": "owner",
    "page_keep_contact": "owner",
    "page_look_at_payment": "owner",
    "page_other_card": "owner",
    "page_extend": "owner",
    "page_release": "owner",
    "page_bank": "owner",
    "page_booking": "owner",
    "page_ticket_qr": "owner",
    "page_tickets_pdf": "owner",
    "page_tickets_ics": "owner",
    **dict.fromkeys(
        ("page_apple_wallet", "page_google_wallet", "page_ticket_apple_wallet", "page_ticket_google_wallet"), "owner"
    ),
    "page_receipt": "owner",
    "page_invoice": "owner",
    "page_issue_invoice": "owner",
    "page_return_tickets": "owner",
    "page_send_transfer": "owner",
    "page_withdraw_transfer": "owner",
    "page_give_back": "owner",
    "page_priority": "owner",
    # -- signed-in fans and guests
    "page_account": "fan",
    "page_change_account": "fan",
    "page_erase": "fan",
    **dict.fromkeys(("page_send_phone_code_form", "page_confirm_phone_form"), "fan"),  # their own number
    # -- on the way to being signed in as a member
    "page_staff_sign_in": "public",
    "page_staff_password": "public",
    "page_staff_code": "public",
    "page_second_factor": "public",
    "page_confirm_second_factor": "public",
    "page_staff_sign_out": "public",
    "page_invitation": "public",
    "page_accept_invitation": "public",
    # -- the team, by permission
    **dict.fromkeys(("page_door", "page_door_event"), "staff:door:scan"),
    **dict.fromkeys(
        ("page_own_refund", "page_own_retry_refund", "page_own_cancel", "page_own_reseat", "page_own_transfer"),
        "staff:refunds:write",
    ),
    **dict.fromkeys(("page_own_resend", "page_own_change_email", "page_own_tickets_pdf"), "staff:refunds:write"),
    **dict.fromkeys(("page_desk", "page_desk_price", "page_desk_sell"), "staff:refunds:write"),
    "page_issue_own_invoice": "staff:refunds:write",
    **dict.fromkeys(("page_own_bookings", "page_own_booking", "page_own_waitlist"), "staff:bookings:read"),
    **dict.fromkeys(("page_invoices", "page_own_invoice", "page_invoices_csv"), "staff:bookings:read"),
    **dict.fromkeys(("page_exports", "page_export_table"), "staff:bookings:read"),  # the tables have names in them
    **dict.fromkeys(
        (
            "page_buyer_messages",
            "page_write_buyer_message",
            "page_buyer_message",
            "page_buyer_message_mail",
            "page_send_buyer_message",
        ),
        "staff:messages:write",
    ),
    **dict.fromkeys(
        ("page_overview", "page_own_event", "page_event_seating", "page_sale_options", "page_dates"),
        "staff:events:read",
    ),
    **dict.fromkeys(
        ("page_event_details", "page_event_venue", "page_event_prices", "page_event_sale", "page_event_room"),
        "staff:events:read",
    ),
    **dict.fromkeys(
        ("page_event_seats", "page_preview_event", "page_preview_page", "page_preview_map"), "staff:events:read"
    ),
    **dict.fromkeys(
        ("page_walk_event", "page_walk_seats", "page_walk_price", "page_walk_checkout", "page_walk_checkout_page"),
        "staff:events:read",  # a draft as a fan will see it
    ),
    **dict.fromkeys(("page_walk_tickets", "page_walk_tickets_pdf"), "staff:events:read"),
    **dict.fromkeys(("page_venues", "page_venue", "page_venue_map"), "staff:events:read"),
    **dict.fromkeys(("page_brand", "page_seller", "page_wallets"), "staff:events:read"),
    **dict.fromkeys(("page_feeds", "page_feed_create", "page_feed_end"), "staff:events:read"),  # one's own address
    **dict.fromkeys(
        ("page_new_event", "page_create_draft", "page_copy_event", "page_change_picture", "page_add_dates"),
        "staff:events:write",
    ),
    **dict.fromkeys(
        ("page_change_event_details", "page_change_event_venue", "page_change_event_prices"), "staff:events:write"
    ),
    **dict.fromkeys(
        ("page_change_event_sale", "page_change_event_room", "page_change_event_seats"), "staff:events:write"
    ),
    **dict.fromkeys(("page_change_sale_options", "page_own_waitlist_rules"), "staff:events:write"),
    **dict.fromkeys(
        ("page_new_venue", "page_make_venue", "page_change_place", "page_replace_plan", "page_edit_plan"),
        "staff:events:write",
    ),
    **dict.fromkeys(("page_arrange_venue", "page_save_arrangement"), "staff:events:write"),
    **dict.fromkeys(("page_change_brand", "page_change_logo", "page_change_seller"), "staff:events:write"),
    **dict.fromkeys(("page_put_apple_wallet", "page_put_google_wallet"), "staff:events:write"),
    **dict.fromkeys(
        ("page_publish_own_event", "page_publish_dates", "page_open_own_sale", "page_close_event"),
        "staff:sales:control",
    ),
    **dict.fromkeys(("page_ask_cancel_event", "page_cancel_own_event"), "staff:sales:control"),
    **dict.fromkeys(("page_codes", "page_make_codes", "page_take_codes", "page_codes_file"), "staff:codes:write"),
    **dict.fromkeys(
        ("page_presale", "page_open_presale", "page_draw_presale", "page_registrations_file"), "staff:codes:write"
    ),
    **dict.fromkeys(("page_live_sale", "page_reports", "page_report_file", "page_report_mail"), "staff:figures:read"),
    "page_payouts": "staff:figures:read",  # sums by account, as in the reports; nobody at the gate sees them
    **dict.fromkeys(("page_audit", "page_audit_check", "page_live_activity"), "staff:audit:read"),
    "page_team": "staff:team:read",
    **dict.fromkeys(
        ("page_team_invite", "page_team_withdraw", "page_team_role", "page_team_remove", "page_team_reset"),
        "staff:team:write",
    ),
    "page_connect_account": "staff:keys:write",  # whose account takes the money, only an owner decides
    **dict.fromkeys(("page_team_make_key", "page_team_revoke_key"), "staff:keys:write"),
    **dict.fromkeys(
        ("page_webhooks", "page_webhook", "page_webhook_create", "page_webhook_rotate", "page_webhook_remove"),
        "staff:webhooks:write",
    ),
    **dict.fromkeys(("page_webhook_test", "page_webhook_again"), "staff:webhooks:write"),
}


def cookies(world: World) -> dict[str, list[tuple[str, str]]]:
    """Everybody who can have a session in a browser; nobody else's word counts on a page."""
    sessions = {name: person.session for name, person in world.people.items()} | {"half": world.half.session}
    found = {name: [("cookie", f"{SESSION_COOKIE}={secret}")] for name, secret in sessions.items()}
    return found | {"nobody": []}


async def ask(client: AsgiClient, route: Route, headers: list[tuple[str, str]], **changes: str):
    origin = [] if route.method == "GET" else [("origin", changes.get("origin", "https://test"))]
    body = b"" if route.unsafe else None
    return await client.ask(route.method, route.path(event_id=EVENT_ID), [*headers, *origin], body, kind=FORM)


async def test_every_page_is_decided_and_no_row_is_of_a_page_that_is_gone():
    declared = {route.name: route.access for route in page_table()}
    undecided = sorted(declared.keys() - ROWS.keys())
    assert not undecided, f"decide in ROWS who may see {undecided}"
    assert declared == ROWS
    for route in page_table():
        for_staff = route.template.startswith(STAFF_PATHS)
        assert not ROWS[route.name].startswith("staff:") or for_staff, f"{route.template}: staff pages have staff paths"


async def test_every_page_admits_exactly_the_callers_of_its_row(world: World, guarded: AsgiClient):
    """Page × role, half signed-in members included: the others are led to signing in, or refused."""
    wrong, asked = [], 0
    for route in page_table():
        for caller, headers in cookies(world).items():
            reply = await ask(guarded, route, headers)
            asked += 1
            admitted = reply.status == Reached.http_status
            if admitted != may(ROWS[route.name], caller) or (not admitted and reply.status not in (303, 401, 403)):
                wrong.append((route.name, caller, reply.status))
    assert wrong == []
    assert asked > 300


async def test_csrf_every_form_needs_the_word_of_its_session_and_our_own_origin(world: World):
    """Each action with a real session: without the word, and from another site, nothing happens."""
    actions = [route for route in page_table() if route.method == "POST"]
    assert len(actions) > 10
    for route in actions:
        caller = "owner of hall" if ROWS[route.name].startswith("staff:") else "fan"
        headers = cookies(world)[caller]
        for origin in ("https://test", "https://evil.example"):
            reply = await ask(world.client, route, headers, origin=origin)
            assert reply.status == 403, (route.name, origin, reply.status)


async def test_idor_pages_of_somebody_elses_booking_do_not_exist(world: World):
    """Every page of a booking, asked for by everybody but its owner."""
    owned = [route for route in page_table() if ROWS[route.name] == "owner" and route.method == "GET"]
    assert len(owned) > 10
    for route in owned:
        for caller, headers in cookies(world).items():
            if caller == "fan":
                continue
            reply = await world.client.ask("GET", route.path(booking_id=world.booking), headers)
            assert reply.status in (303, 404), (route.name, caller, reply.status)
