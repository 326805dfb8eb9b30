"""Being forgotten is complete: after it the whole ledger is read, and every table has a decision (B18).

A person does everything here that leaves an address, a name or a number behind, then asks to be forgotten.
"""

from pathlib import Path

from frontrow.boxoffice.messages.model.channel_reports import ReportKind
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.presale.model import Purpose, Signup, SignupState
from frontrow.boxoffice.waitlist.model.waitlist import NewEntry
from tests.boxoffice.organiser.http import OrganiserApi, an_organiser_api
from tests.boxoffice.people.support import Person, fan
from tests.support.ledger_rows import Rows, read_all_rows

ADDRESS, NAME, PHONE = "forget.me@quendel.example", "Zyxophilia Quendel", "+436649876501"
DEVICE = {"endpoint": "https://push.example.org/quendel", "keys": {"p256dh": "key", "auth": "auth"}}
TRACES = ("quendel", "zyxophilia", "6649876501")

# What becomes of each table when somebody asks to be forgotten. A new table is decided here.
ERASED = {
    "buyer_messages": "what was written to their bookings alone",
    "contacts": "address, name and number, of guests with the same address too",
    "fans": "the address; the row stays, so that nobody else gets the id",
    "in_app_messages": "all",
    "magic_links": "all to the address",
    "name_tails": "what a booking is found by",
    "phone_codes": "the number that a code was sent to",
    "push_subscriptions": "their devices",
    "sale_signups": "all of the address",
    "sessions": "all",
    "ticket_transfers": "the address and name of the tickets they were sent",
    "waitlist": "they leave every line; the row keeps a random id",
}
RANDOM_ID_ONLY = {
    "booking_seats", "booking_uses", "bookings", "add_on_redemptions", "idempotency_keys", "offers", "outbox",
    "payments", "provider_notes", "queue_audit", "refunds", "returns", "scans", "tickets", "inbox", "use_counters",
    "disputes",
}  # fmt: skip
KEPT = {
    "audit_heads": "hashes",
    "blocked_addresses": "digests: who wants no more messages gets none after an erasure either",
    "audit_log": "facts with random ids, append-only",
    "changes": "what members of the team did, append-only",
    "deliveries": "purged by age; addresses in it are sealed or looked up when it is sent",
    "invoices": "kept by law, append-only",
    "requests": "answers for a retry, sealed and purged by age",
}
NOBODYS = {
    "api_keys", "brands", "cancellations", "catalogue_version", "event_listings", "event_words", "events",
    "feed_addresses", "invitations", "invoice_numbers", "ledger_heartbeat", "organisers", "payment_accounts",
    "pictures", "plans", "platform_keys", "presales", "price_tiers", "recovery_codes", "report_mails", "seats",
    "seller_history", "sellers",
    "served_versions", "show_dates", "staff", "tax_rate_history", "venues", "waitlist_rules", "wallet_keys",
    "webhook_endpoints",
}  # fmt: skip


def traces(rows: Rows) -> set[str]:
    """The tables where the person can be read."""
    return {
        table
        for table, found in rows.items()
        if any(trace in str(value).lower() for row in found for value in row for trace in TRACES)
    }


async def live(api: OrganiserApi, mine: Person, other: Person) -> str:
    """Whatever a fan does that leaves something behind. Returns their booking."""
    platform, client, now_us = api.platform, api.client, api.platform.clock()
    wishes = {"phone": PHONE, "name": NAME, "channels": ["email", "push"], "locale": "en"}
    assert (await client.patch("/v1/me/preferences", json=wishes, headers=mine.bearer)).status_code == 200
    assert (await client.post("/v1/me/push", json=DEVICE, headers=mine.bearer)).status_code == 201
    booking = await api.bought("S-A-1", "S-A-2", "S-A-3", fan=mine.id, email=ADDRESS, name=NAME)
    await api.bought("S-B-1", fan="place:guest", email=ADDRESS, name=NAME)  # as a guest, before the account
    theirs = await api.bought("S-C-1", "S-C-2", fan=other.id, email="other@example.org", name="Other")
    ledger, transfers = platform.ledger, platform.box_office.transfers
    await ledger.messages.put_contact(Contact("place:typo", ADDRESS, name=NAME), now_us)
    for path, body in (
        ("/v1/auth/link", {"email": ADDRESS}),
        (f"/v1/bookings/{booking.id}/transfers", {"seat": "S-A-3", "email": "grace@example.org"}),
        (f"/v1/bookings/{booking.id}/invoices", {"billed_to": f"{NAME}, Quendelweg 1"}),
    ):
        done = await client.post(path, json=body, headers=mine.bearer)
        assert done.status_code < 300, (path, done.text)
    notice = Signup("reg_1", api.event, Purpose.NOTICE, ADDRESS, "en", SignupState.CONFIRMED)
    assert await ledger.signups.save_signup(notice, None)
    await transfers.send(theirs, theirs.seats[0], ADDRESS, "en")
    await ledger.waitlist.join_waitlist(NewEntry("wle_1", api.event, mine.id, 1), now_us)
    own = f"/v1/organiser/events/{api.event}/bookings/{booking.id}"
    assert (await api.ask("POST", f"{own}/resend")).status_code == 200
    await ledger.messages.put_phone_code(mine.id, PHONE, "digest", now_us + 1, now_us)
    said = f"smtp; 550 5.1.1 <{ADDRESS}>: user unknown"
    blocks = ledger.messages.make_block_writes("email", ADDRESS, ReportKind.BOUNCED, said, now_us)
    await ledger.messages.once("reports", "1", blocks, now_us)
    notifier = platform.messaging.notifier
    for fact in await ledger.claim_facts(now_us, now_us + 1, 100):
        await ledger.messages.once("notify", str(fact.number), await notifier.plan(fact.number, fact.fact), now_us)
    await notifier.worker().drain()
    await platform.people.mail.worker().drain()
    return booking.id


async def test_nothing_that_names_a_person_is_left_in_any_table(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path) as api:
        mine, other = await fan(api.platform, ADDRESS), await fan(api.platform, "other@example.org")
        await live(api, mine, other)
        url = api.platform.settings.ledger_url
        before = traces(read_all_rows(url))
        assert {"fans", "contacts", "name_tails", "push_subscriptions", "ticket_transfers", "sale_signups"} <= before
        assert before <= ERASED.keys() | KEPT.keys(), "a table of its own for what names a person"
        done = await api.client.post("/v1/me/erase", json={"confirm": "erase my data"}, headers=mine.bearer)
        assert done.status_code == 204
        assert traces(read_all_rows(url)) == {"invoices"}, "an invoice is kept by law"


async def test_every_table_has_a_decision(tmp_path: Path) -> None:
    """A new table fails here until somebody has thought of the people in it."""
    async with an_organiser_api(tmp_path) as api:
        found = read_all_rows(api.platform.settings.ledger_url).keys() - {"alembic_version"}
    decided = [ERASED.keys(), RANDOM_ID_ONLY, KEPT.keys(), NOBODYS]
    assert found - set().union(*decided) == set(), "decide what becomes of it when somebody asks to be forgotten"
    assert set().union(*decided) == found
    assert sum(map(len, decided)) == len(found), "one decision per table"
