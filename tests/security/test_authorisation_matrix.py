"""Every route, every sort of caller, every owner: decided here, row by row, and held against the running app.

A route that is not in ROWS fails the first test: whoever adds one decides here who may use it.
"""

import pytest

from frontrow.boxoffice.people.model.roles import PERMISSIONS, ROLES
from tests.security.callers import GRANTED, may
from tests.security.route_table import table
from tests.security.world import EVENT_ID, OTHER_EVENT_ID, AsgiClient, World, bearer

pytestmark = pytest.mark.asyncio(loop_scope="session")

# operation id -> what it asks for. `own:` routes are shared with the fast path and check by themselves.
ROWS = {
    "ask_storm_consent": "public",  # its token is the permission, signed by this platform
    # -- everybody
    "list_events": "public",
    "get_event": "own:public",
    "ask_sign_in_link": "public",
    "redeem_sign_in_link": "public",
    "start_guest_session": "public",
    "get_session": "public",
    "staff_sign_in": "public",
    "accept_invitation": "public",
    "openapi": "public",
    "get_map": "public",
    "get_seats": "own:public",
    "poll_seats": "own:public",
    "stream_seats": "own:public",
    "healthz": "public",
    "readyz": "public",
    "jwks": "public",
    "metrics": "public",
    "accept_transfer": "public",  # the link in the body is checked
    "provider_webhook": "public",  # signed by the provider
    "channel_report": "public",  # signed by the provider
    # -- the waiting room: places and passes are checked by its own endpoints
    "room_join": "own:public",
    "room_status": "own:public",
    "room_claim": "own:public",
    "room_now_serving": "own:public",
    "room_check_pass": "own:public",
    "room_renew": "own:public",
    "room_give_back": "own:public",
    "room_heartbeat": "own:public",
    "room_visit": "own:public",
    "room_left": "own:public",
    "room_leave": "own:public",
    "room_challenge": "own:public",
    "room_draw": "own:public",
    "room_message": "own:public",
    "room_overflow": "own:public",
    "room_page": "own:public",
    "room_stream": "own:public",
    "room_notice": "own:public",
    "room_notice_kinds": "own:public",
    "room_shop_health": "own:public",  # signed with its reporter's key; sessions and passes count for nothing
    # -- who has a pass
    "place_hold": "own:pass",
    # -- whose it is: a booking, an entry, an offer
    "get_booking": "own:owner",
    "extend_hold": "own:owner",
    "release_hold": "own:owner",
    "pay": "own:owner",
    "cancel_booking": "owner",
    "quote_refund": "owner",
    "send_transfer": "owner",
    "list_transfers": "owner",
    "withdraw_transfer": "owner",
    "ask_refund": "owner",
    "list_refunds": "owner",
    "return_tickets": "owner",
    "priority_pass": "owner",
    "answer_bank": "owner",
    "list_tickets": "owner",
    "tickets_pdf": "owner",
    "issue_invoice": "owner",
    "list_invoices": "owner",
    "invoice_pdf": "owner",
    "tickets_ics": "owner",
    "ticket_qr": "owner",
    **dict.fromkeys(("apple_wallet", "ticket_apple_wallet", "ticket_google_wallet"), "owner"),
    "join_waitlist": "owner",
    "waitlist_position": "owner",
    "leave_waitlist": "owner",
    "list_offers": "owner",
    "claim_offer": "owner",
    "decline_offer": "owner",
    # -- any session
    "end_session": "session",
    "list_sessions": "session",
    "revoke_session": "session",
    "staff_second_step": "session",
    "begin_totp_enrolment": "session",
    "confirm_totp_enrolment": "session",
    "change_password": "session",
    # -- fans and guests
    "get_me": "fan",
    "change_preferences": "fan",
    "add_push_subscription": "fan",
    "send_phone_code": "fan",
    "confirm_phone": "fan",
    "add_app": "fan",
    "remove_push_subscription": "fan",
    "list_my_messages": "fan",
    "list_my_bookings": "fan",
    "export_my_data": "fan",
    "erase_my_data": "fan",
    # -- the team
    "list_team": "staff:team:read",
    "invite_member": "staff:team:write",
    "withdraw_invitation": "staff:team:write",
    "change_member": "staff:team:write",
    "remove_member": "staff:team:write",
    "reset_member": "staff:team:write",
    "list_api_keys": "staff:keys:write",
    "make_api_key": "staff:keys:write",
    "revoke_api_key": "staff:keys:write",
    # -- organisers: their events, venues, sales, figures, webhooks, codes; and the gate
    "get_bundle": "staff:door:scan",
    "scan_ticket": "staff:door:scan",
    "scan_exit": "staff:door:scan",
    "find_at_door": "staff:door:scan",
    "check_in_booking": "staff:door:scan",
    "sync_scans": "staff:door:scan",
    "list_duplicates": "staff:door:scan",
    "count_scans": "staff:door:scan",
    "get_revocations": "staff:door:scan",
    "list_admissions": "staff:door:scan",
    "undo_scan": "staff:door:scan",
    "redeem_add_on": "staff:door:scan",
    "undo_redemption": "staff:door:scan",
    "sync_redemptions": "staff:door:scan",
    "get_guests": "staff:door:scan",
    "preview_buyer_message": "staff:messages:write",
    "send_buyer_message": "staff:messages:write",
    "list_buyer_messages": "staff:messages:write",
    "get_buyer_message": "staff:messages:write",
    "search_bookings": "staff:bookings:read",
    "get_own_booking": "staff:bookings:read",
    "list_failed_refunds": "staff:bookings:read",
    "list_disputes": "staff:bookings:read",
    "refund_booking": "staff:refunds:write",
    "retry_refund": "staff:refunds:write",
    "reseat_booking": "staff:refunds:write",
    "transfer_ticket": "staff:refunds:write",
    "resend_tickets": "staff:refunds:write",
    "sell_at_desk": "staff:refunds:write",
    "get_desk_totals": "staff:bookings:read",
    "change_buyer_email": "staff:refunds:write",
    "list_own_events": "staff:events:read",
    "create_event": "staff:events:write",
    "get_own_event": "staff:events:read",
    "change_event": "staff:events:write",
    "put_picture": "staff:events:write",
    "remove_picture": "staff:events:write",
    "get_brand": "staff:events:read",
    "preview_brand": "staff:events:read",
    "put_brand": "staff:events:write",
    "put_logo": "staff:events:write",
    "remove_logo": "staff:events:write",
    "choose": "owner",
    "list_dates": "staff:events:read",
    "add_dates": "staff:events:write",
    "publish_dates": "staff:sales:control",
    "list_show_dates": "public",
    "publish_event": "staff:sales:control",
    "complete_event": "staff:sales:control",
    "open_sale": "staff:sales:control",
    "pause_sale": "staff:sales:control",
    "resume_sale": "staff:sales:control",
    "cancel_event": "staff:sales:control",
    "get_cancellation": "staff:events:read",
    "get_report": "staff:figures:read",
    "get_figures": "staff:figures:read",
    "get_figures_csv": "staff:figures:read",
    "get_series": "staff:figures:read",
    "get_series_csv": "staff:figures:read",
    "stream_figures": "staff:figures:read",
    "poll_figures": "staff:figures:read",
    "list_changes": "staff:audit:read",
    "list_webhooks": "staff:webhooks:write",
    "create_webhook": "staff:webhooks:write",
    "rotate_webhook": "staff:webhooks:write",
    "remove_webhook": "staff:webhooks:write",
    "list_deliveries": "staff:webhooks:write",
    "redeliver": "staff:webhooks:write",
    "ask_sale_notice": "public",
    "register_for_presale": "public",
    "confirm_sign_up": "public",
    "end_sign_up": "public",
    "get_presale": "public",
    "open_presale": "staff:codes:write",
    "get_own_presale": "staff:codes:write",
    "draw_presale": "staff:codes:write",
    "export_registrations": "staff:codes:write",
    "count_codes": "staff:codes:write",
    "import_codes": "staff:codes:write",
    "get_own_room": "staff:figures:read",
    "steer_room": "staff:sales:control",
    "get_own_waitlist": "staff:bookings:read",
    "set_waitlist_rules": "staff:events:write",
    "get_seller": "staff:events:read",
    "issue_own_invoice": "staff:refunds:write",
    "list_own_invoices": "staff:bookings:read",
    "own_invoice_pdf": "staff:bookings:read",
    "export_invoices": "staff:bookings:read",
    "put_seller": "staff:events:write",
    "get_wallets": "staff:events:read",
    **dict.fromkeys(("put_apple_wallet", "remove_apple_wallet"), "staff:events:write"),
    **dict.fromkeys(("put_google_wallet", "remove_google_wallet"), "staff:events:write"),
    "list_venues": "staff:events:read",
    "create_venue": "staff:events:write",
    "get_venue": "staff:events:read",
    "change_venue": "staff:events:write",
    "get_plan": "staff:events:read",
}


async def test_no_route_is_unlisted_and_no_row_is_of_a_route_that_is_gone():
    declared = {route.name: route.access for route in table()}
    undecided = sorted(declared.keys() - ROWS.keys())
    assert not undecided, f"decide in ROWS who may use {undecided}"
    assert sorted(ROWS.keys() - declared.keys()) == []
    assert declared == ROWS


async def test_every_route_admits_exactly_the_callers_of_its_row(world: World, guarded: AsgiClient):
    """Route × role: also half signed-in members, API keys, and members of another organiser."""
    wrong, asked = [], 0
    for route in table():
        if ROWS[route.name].startswith("own:"):
            continue
        for caller, headers in world.callers().items():
            reply = await guarded.ask(route.method, route.path(event_id=EVENT_ID), headers, route.sample())
            asked += 1
            admitted = reply.status == 418
            if admitted != may(ROWS[route.name], caller) or (not admitted and reply.status not in (401, 403)):
                wrong.append((route.name, caller, reply.status, reply.code))
    assert wrong == []
    assert asked > 300


async def test_what_a_role_may_do_is_decided_here_too():
    """A right that a role gains or loses, and a new one, is decided in `callers.py` as well."""
    assert {role.value: set(granted) for role, granted in ROLES.items()} == GRANTED
    assert set().union(*GRANTED.values()) == set(PERMISSIONS)
    for name, access in ROWS.items():
        if access.startswith("staff:"):
            assert access.removeprefix("staff:") in PERMISSIONS, name


async def test_a_shop_call_needs_a_pass_for_its_own_event_whoever_asks(world: World):
    """B17: sessions, roles and keys open no shop; a pass of another event does not either."""
    shop = [route for route in table() if ROWS[route.name] in ("own:pass", "pass")]
    assert shop
    for route in shop:
        path = route.path(event_id=EVENT_ID)
        for caller, headers in world.callers().items():
            reply = await world.client.ask(route.method, path, headers, route.sample())
            assert reply.status == 401, (route.name, caller, reply.status, reply.body)
        reply = await world.client.ask(route.method, path, bearer(world.other_pass_jwt), route.sample())
        assert reply.status in (401, 403), (route.name, reply.status)


async def test_what_belongs_to_somebody_does_not_exist_for_anybody_else(world: World):
    """Route × owner: every route that asks for an owner, with somebody's real booking and everybody else's proofs."""
    owned = [
        route for route in table() if ROWS[route.name] in ("owner", "own:owner") and "booking_id" in route.parameters()
    ]
    assert len(owned) > 20
    others = {name: headers for name, headers in world.callers().items() if name != "fan"}
    others["a pass of the same event"] = bearer(stranger_pass(world))
    others["a token of another booking"] = [("frontrow-booking", world.booking_token[:-3] + "AAA")]
    for route in owned:
        path = route.path(booking_id=world.booking, event_id=EVENT_ID)
        for caller, headers in others.items():
            reply = await world.client.ask(route.method, path, headers, route.sample())
            assert reply.status in (401, 404), (route.name, caller, reply.status, reply.body)
    mine = await world.client.ask("GET", f"/v1/bookings/{world.booking}", world.callers()["fan"])
    assert mine.status == 200, mine.body
    token = await world.client.ask("GET", f"/v1/bookings/{world.booking}", [("frontrow-booking", world.booking_token)])
    assert token.status == 200, token.body


def stranger_pass(world: World) -> str:
    from tests.security.world import pass_for

    return pass_for(world.platform, EVENT_ID, world.people["stranger"].id, position=77)


async def test_an_organisers_things_do_not_exist_for_another_organiser(world: World):
    """Every staff route with an event in its path, asked by the other organiser's owner and key: 404, with a body that
    would be right for its own event."""
    seen = []
    for route in table():
        if not ROWS[route.name].startswith("staff:") or "event_id" not in route.parameters():
            continue
        for caller in ("owner of other", "key of other"):
            path = route.path(event_id=EVENT_ID)
            reply = await world.client.ask(route.method, path, world.callers()[caller], route.sample())
            assert reply.status == 404, (route.name, caller, reply.status, reply.body)
        seen.append(route.name)
    assert OTHER_EVENT_ID not in EVENT_ID
    assert len(seen) == len(set(seen)) > 40
