"""The ledger's messages: the inbox of consumers, deliveries with claims and retries, contacts and webhook endpoints.

The contract is in `messages/ports/message_book.py`.
"""

import hmac
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.batched_reads import ReadsByKey
from frontrow.boxoffice.adapters.ledger.engine.due_work import DueWork
from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunProgram, RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.facts.model import OutboxFact, decode_fact
from frontrow.boxoffice.facts.ports import PlannedWrite
from frontrow.boxoffice.messages.model.channel_reports import (
    BlockedAddress,
    ReportKind,
    address_digest,
    masked_detail,
)
from frontrow.boxoffice.messages.model.messages import (
    CodeAnswer,
    Contact,
    Delivery,
    DeliveryResult,
    EmailChangeRefused,
    Endpoint,
    InAppMessage,
    NewDelivery,
)
from frontrow.boxoffice.people.model.email_addresses import canonical_email
from frontrow.boxoffice.people.model.person_names import folded_name, name_tails
from frontrow.core.errors import InvalidInput

MAX_CLAIMED: Final = 1_000
MAX_PUSH: Final = 20  # devices per person
MAX_CODE_TRIES: Final = 5
PURGED_CODES: Final = 100  # ended ones that are deleted with each new one
MAX_BODY_CHARS: Final = 100_000
NEWEST_FACTS: Final = 100_000  # how far back a consumer looks for facts that the bus lost
ADD_DELIVERIES: Final = "add_deliveries"
PUT_IN_APP: Final = "put_in_app"
TOGETHER: Final = frozenset({ADD_DELIVERIES, PUT_IN_APP})  # rows of many messages in one statement
_names: Final = msgspec.json.Decoder(tuple[str, ...])


class SqlMessageBook:
    """The inbox of consumers, deliveries, contacts and webhook endpoints (`MessageBook`)."""

    def __init__(self, store: LedgerStore, line: CommitLine, reads: ReadsByKey, due: DueWork) -> None:
        self.quiet = due
        self._store, self._line, self._reads, self._due = store, line, reads, due

    async def once(self, source: str, message_id: str, writes: Sequence[PlannedWrite], now_us: int) -> bool:
        (done,) = await self.once_each(source, [(message_id, writes)], now_us)
        return done

    async def once_each(
        self, source: str, messages: Sequence[tuple[str, Sequence[PlannedWrite]]], now_us: int
    ) -> list[bool]:
        if not messages:
            return []
        own = cast("Sequence[tuple[str, Sequence[Query]]]", messages)
        done = await self._line.submit(RunProgram(lambda _: _once_each(source, own, now_us), now_us))
        return cast(list[bool], done)

    async def noticed(self, source: str, message_id: str) -> bool:
        return bool(await self._store.read(Query("inbox_has", params=(source, message_id))))

    async def seen_before(self, source: str, message_id: str, now_us: int) -> bool:
        query = Query("add_inbox", [(source, message_id, now_us)])
        return not await self._line.submit(RunStatements((query,), now_us=now_us))

    async def first_seen(self, source: str, message_id: str, now_us: int) -> int:
        queries = (Query("add_inbox", [(source, message_id, now_us)]), Query("inbox_time", params=(source, message_id)))
        rows = await self._line.submit(RunStatements(queries, now_us=now_us))
        return int(rows[0][0])

    def make_delivery_writes(self, deliveries: Sequence[NewDelivery], now_us: int) -> list[Query]:
        if not deliveries:
            return []
        if any(len(one.body) > MAX_BODY_CHARS for one in deliveries):
            raise InvalidInput(f"a delivery's body has at most {MAX_BODY_CHARS:,} characters", param="body")
        rows = [(one.kind, one.queue, one.dedupe, one.body, now_us) for one in deliveries]
        return [Query(ADD_DELIVERIES, rows)]

    async def claim_deliveries(
        self, kind: str, now_us: int, claim_us: int, limit: int, per_queue: int
    ) -> list[Delivery]:
        if not (1 <= limit <= MAX_CLAIMED and per_queue >= 1):
            raise InvalidInput(f"limit must be 1 to {MAX_CLAIMED}, not {limit}", param="limit")
        if not await self._due.may_have_deliveries(kind, now_us):
            return []
        until_us = now_us + claim_us
        params, taken = (kind, now_us, per_queue, limit), list[int]()
        claimed = await self._line.submit(RunProgram(lambda _: _claim_due(params, until_us, taken), now_us))
        return [Delivery(*row) for row in sorted(claimed, key=lambda row: int(row[0]))]

    async def renew_deliveries(self, numbers: Sequence[int], now_us: int, claim_us: int) -> None:
        if numbers:
            rows = [(number, now_us, now_us + claim_us) for number in numbers]
            await self._line.submit(RunStatements((Query("renew_deliveries", rows),), now_us=now_us))

    async def save_delivery_results(self, results: Sequence[DeliveryResult], now_us: int) -> None:
        if results:
            rows = [
                (one.number, one.state.value, one.attempts, one.next_at_us, one.reason, now_us)
                for one in sorted(results, key=lambda one: one.number)
            ]
            await self._line.submit(RunStatements((Query("save_delivery_results", rows),), now_us=now_us))

    async def missed_facts(self, source: str, after: int, limit: int, since_us: int = 0) -> list[OutboxFact]:
        params = (source, after, since_us, NEWEST_FACTS, limit)
        rows = await self._store.read(Query("missed_facts", params=params))
        return [OutboxFact(row[0], decode_fact(row[1])) for row in rows]

    async def delivery_counts(self, kind: str) -> dict[str, int]:
        """The number of deliveries of a kind per state."""
        return {row[0]: row[1] for row in await self._store.read(Query("delivery_counts", params=(kind,)))}

    async def put_contact(self, contact: Contact, now_us: int) -> None:
        if len(contact.push) > MAX_PUSH:
            raise InvalidInput(f"a person has at most {MAX_PUSH} devices for push", param="push")
        devices = sorted((_push_endpoint(document), contact.fan, document, now_us) for document in contact.push)

        def run() -> Program[None]:
            yield from put_contact(contact, "", now_us)
            yield Query("drop_push", [(contact.fan,)])
            if devices:
                yield Query("put_push", devices)

        await self._line.submit(RunProgram(lambda _: run(), now_us))

    async def keep_buyer(self, buyer: Contact, event_id: str, now_us: int) -> None:
        await self._line.submit(RunProgram(lambda _: keep_buyer(buyer, event_id, now_us), now_us))

    async def contact(self, fan: str) -> Contact | None:
        rows = await self._reads["contacts_by_fan"].read(fan)
        if not rows:
            return None
        push = await self._reads["push_of"].read(fan)
        return msgspec.structs.replace(contact_of(rows[0]), push=tuple(row[1] for row in push[:MAX_PUSH]))

    async def blocked(self, addresses: Sequence[tuple[str, str]]) -> dict[tuple[str, str], BlockedAddress]:
        if not addresses:
            return {}
        by_digest = {(channel, _digest(channel, address)): (channel, address) for channel, address in addresses}
        rows = await self._store.read(Query("blocked_of", sorted(by_digest)))
        return {by_digest[row[0], row[1]]: BlockedAddress(row[0], ReportKind(row[2]), row[3], row[4]) for row in rows}

    def make_block_writes(
        self, channel: str, address: str, reason: ReportKind, detail: str, now_us: int
    ) -> list[Query]:
        row = (channel, _digest(channel, address), reason.value, masked_detail(detail), now_us)
        return [Query("block_addresses", [row])]

    def make_unblock_writes(self, channel: str, address: str, reason: ReportKind) -> list[Query]:
        return [Query("unblock_addresses", [(channel, _digest(channel, address), reason.value)])]

    async def unblock(self, channel: str, address: str, now_us: int) -> bool:
        query = Query("unblock_addresses", [(channel, _digest(channel, address), "")])
        return bool(await self._line.submit(RunStatements((query,), now_us=now_us)))

    async def put_phone_code(self, fan: str, phone: str, digest: str, ends_at_us: int, now_us: int) -> None:
        queries = (
            Query("purge_phone_codes", params=(now_us, PURGED_CODES)),
            Query("put_phone_codes", [(fan, phone, digest, ends_at_us)]),
        )
        await self._line.submit(RunStatements(queries, now_us=now_us))

    async def check_phone_code(self, fan: str, digest_of: Callable[[str], str], now_us: int) -> CodeAnswer:
        run = RunProgram(lambda _: _check_phone_code(fan, digest_of, now_us), now_us)
        return cast(CodeAnswer, await self._line.submit(run))

    async def drop_device(self, fan: str, endpoint: str, now_us: int) -> None:
        await self._line.submit(RunStatements((Query("drop_push_devices", [(fan, endpoint)]),), now_us=now_us))

    async def put_endpoint(self, endpoint: Endpoint, now_us: int) -> None:
        facts = msgspec.json.encode(endpoint.facts).decode()
        about = (endpoint.id, endpoint.organiser, endpoint.event_id, endpoint.url, endpoint.secret)
        row = (*about, facts, int(endpoint.active), now_us)
        note = {"act": "put_endpoint", "endpoint": endpoint.id, "organiser": endpoint.organiser, "url": endpoint.url}
        written = RunStatements((Query("put_endpoints", [row]),), msgspec.json.encode(note).decode(), now_us)
        await self._line.submit(written)

    async def endpoint(self, endpoint_id: str) -> Endpoint | None:
        rows = await self._store.read(Query("endpoint_by_id", params=(endpoint_id,)))
        return _endpoint_of(rows[0]) if rows else None

    async def endpoints_of(self, event_id: str) -> list[Endpoint]:
        return [_endpoint_of(row) for row in await self._store.read(Query("endpoints_of_event", params=(event_id,)))]

    async def unsealed_endpoints(self, limit: int) -> list[Endpoint]:
        return [_endpoint_of(row) for row in await self._store.read(Query("unsealed_endpoints", params=(limit,)))]

    async def seal_endpoint(self, was: Endpoint, sealed: str, now_us: int) -> None:
        note = msgspec.json.encode({"act": "seal_endpoint", "endpoint": was.id}).decode()
        query = Query("seal_endpoints", [(was.id, was.secret, sealed)])
        await self._line.submit(RunStatements((query,), note, now_us))

    async def put_in_app(self, messages: Sequence[InAppMessage], now_us: int) -> None:
        if messages:
            await self._line.submit(RunStatements(tuple(self.make_in_app_writes(messages)), now_us=now_us))

    def make_in_app_writes(self, messages: Sequence[InAppMessage]) -> list[Query]:
        rows = [(one.id, one.fan, one.subject, one.body, one.created_at_us, one.notice) for one in messages]
        return [Query(PUT_IN_APP, rows)] if rows else []

    async def in_app(self, fan: str, limit: int = 50) -> list[InAppMessage]:
        rows = await self._store.read(Query("in_app_of", params=(fan, max(1, min(limit, 500)))))
        return [InAppMessage(*row) for row in rows]


def _once_each(source: str, messages: Sequence[tuple[str, Sequence[Query]]], now_us: int) -> Program[list[bool]]:
    """Record all messages in one statement, then run the statements of the new ones.

    Their deliveries are written together, and so are their messages for the page.
    """
    unseen = {row[1] for row in (yield Query("add_inbox", [(source, id_, now_us) for id_, _ in messages]))}
    heard: list[bool] = []
    rows: dict[str, list[Any]] = {}
    for message_id, queries in messages:
        heard.append(message_id in unseen)
        unseen.discard(message_id)  # the same message again in this batch
        for query in queries if heard[-1] else ():
            if query.name in TOGETHER:
                rows.setdefault(query.name, []).extend(query.rows)
            else:
                yield query
    for name in sorted(rows):
        yield Query(name, rows[name])
    return heard


def _claim_due(params: tuple[str, int, int, int], until_us: int, taken: list[int]) -> Program[list[Row]]:
    """Claim what is due. `taken` is what the last run of this request has claimed: its answer may have been lost."""
    due: list[Row] = []
    if taken:
        due = yield Query("claimed_deliveries", [(number, until_us) for number in taken])
    due = due or (yield Query("due_deliveries", params=params))
    taken[:] = [row[0] for row in due]
    if not due:
        return []
    return (yield Query("claim_deliveries", [(row[0], until_us) for row in due]))


def _check_phone_code(fan: str, digest_of: Callable[[str], str], now_us: int) -> Program[CodeAnswer]:
    rows = yield Query("try_phone_codes", [(fan, now_us, MAX_CODE_TRIES)])
    if not rows:
        return CodeAnswer.OVER
    phone, digest = str(rows[0][0]), str(rows[0][1])
    if not hmac.compare_digest(digest_of(phone), digest):
        return CodeAnswer.WRONG
    yield Query("drop_phone_codes", [(fan,)])
    if not (yield Query("contacts_by_fan", [(fan,)])):
        yield from put_contact(Contact(fan), "", now_us)
    yield Query("prove_phones", [(fan, phone, now_us)])
    return CodeAnswer.RIGHT


def _endpoint_of(row: Row) -> Endpoint:
    return Endpoint(row[0], row[1], row[2], row[3], row[4], _names.decode(row[5]), bool(row[6]))


def _push_endpoint(document: str) -> str:
    """The endpoint of a web push subscription, which identifies the device."""
    try:
        return str(msgspec.json.decode(document)["endpoint"])
    except (msgspec.DecodeError, KeyError, TypeError):
        raise InvalidInput("a push subscription is JSON with an endpoint", param="push") from None


def _digest(channel: str, address: str) -> str:
    """What stands for an address however it is spelled."""
    return address_digest(channel, canonical_email(address) if channel == "email" else address)


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
    fan, email, phone, locale, channels, name, proven_phone = row
    return Contact(fan, email, phone, locale, _names.decode(channels), name=name, proven_phone=proven_phone)
