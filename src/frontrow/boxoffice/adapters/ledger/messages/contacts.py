"""Writes contacts: what a buyer entered, and the names by which organisers find them."""

from typing import Final

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.events.model.event_changes import EmailChangeRefused
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.people.model.email_addresses import canonical_email
from frontrow.boxoffice.people.model.person_names import folded_name, name_tails

_names: Final = msgspec.json.Decoder(tuple[str, ...])


def put_contact(contact: Contact, event_id: str, now_us: int) -> Program[None]:
    """Write the contact, and its name to the index of every event the fan bought tickets for, and of `event_id`."""
    folded = folded_name(contact.name)
    channels = msgspec.json.encode(contact.channels).decode()
    about = (contact.fan, contact.locale, canonical_email(contact.email), contact.phone, channels)
    yield Query("put_contacts", [(*about, contact.name, folded, now_us)])
    yield Query("drop_name_tails", [(contact.fan,)])
    if folded:
        bought = yield Query("events_bought", params=(contact.fan,))
        events = sorted({str(row[0]) for row in bought} | ({event_id} if event_id else set()))
        rows = [(event, tail, contact.fan) for event in events for tail in name_tails(folded)]
        if rows:
            yield Query("add_name_tails", rows)


def keep_buyer(buyer: Contact, event_id: str, now_us: int) -> Program[None]:
    """Change what the buyer entered. A fan with a proven address keeps that address."""
    rows = yield Query("contacts_by_fan", [(buyer.fan,)])
    stored = contact_of(rows[0]) if rows else Contact(buyer.fan, locale=buyer.locale)
    account = yield Query("fan_by_id", params=(buyer.fan,))
    proven = str(account[0][1]) if account else ""
    email = (stored.email or proven) if proven else (canonical_email(buyer.email) or stored.email)
    wanted = msgspec.structs.replace(stored, email=email, name=buyer.name or stored.name)
    searched = bool((yield Query("has_name_in", params=(event_id, buyer.fan)))) if wanted.name else True
    if wanted != stored or not rows or not searched:
        yield from put_contact(wanted, event_id, now_us)


def change_email(
    fan: str, email: str, event_id: str, organiser_id: str, note: Query, now_us: int
) -> Program[bool | BaseException]:
    """Correct the address of a buyer without an account. False when they had it already.

    The address is the buyer's, not the booking's: whoever bought from another organiser too keeps it.
    """
    account = yield Query("fan_by_id", params=(fan,))
    if account and account[0][1]:
        return EmailChangeRefused("the buyer has an account with a proven address and changes it there", param="email")
    if (yield Query("bought_elsewhere", params=(fan, organiser_id))):
        return EmailChangeRefused("the buyer has bought from another organiser with this address too", param="email")
    rows = yield Query("contacts_by_fan", [(fan,)])
    stored = contact_of(rows[0]) if rows else Contact(fan)
    if stored.email == email:
        return False
    channels = stored.channels if "email" in stored.channels else (*stored.channels, "email")
    yield from put_contact(msgspec.structs.replace(stored, email=email, channels=channels), event_id, now_us)
    yield note
    return True


def contact_of(row: Row) -> Contact:
    """A contact without its devices, which are separate rows."""
    fan, email, phone, locale, channels, name = row
    return Contact(fan, email, phone, locale, _names.decode(channels), name=name)
