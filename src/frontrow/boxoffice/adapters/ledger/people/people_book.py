"""The ledger's people: organisers and staff, invitations, API keys, sessions, fans (`people.ports.PeopleBook`).

A one-time secret is used by a conditional UPDATE; the rows it returns say who won. Changes to a team lock the organiser
first, so two owners who demote each other at the same time cannot both succeed. Notes in the audit log name ids only.

Erasing a fan removes everything that identifies them and ends their waiting. Bookings, payments and tickets keep the
fan's random id and nothing else.
"""

from collections.abc import Sequence
from typing import Final, cast

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.batched_reads import ReadsByKey
from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunProgram, RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program, booking_of
from frontrow.boxoffice.adapters.ledger.waitlist.waitlist_transactions import entry_of, leave
from frontrow.boxoffice.facts.model import Fact
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.people.model.people import (
    AlreadyMember,
    ApiKey,
    Fan,
    Invitation,
    LastOwner,
    Organiser,
    PersonNotFound,
    Session,
    Staff,
    Stage,
    SubjectKind,
)
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.waitlist.model.waitlist import WaitlistEntry

MAX_NAMES: Final = 1_000
MAX_ERASED: Final = 100_000  # a fan who asks to be forgotten is erased completely, not up to a page
_names = msgspec.json.Decoder(tuple[str, ...])


class SqlPeopleBook:
    """Organisers, staff, sessions, API keys and fans (`people.ports.PeopleBook`)."""

    def __init__(self, store: LedgerStore, line: CommitLine, reads: ReadsByKey) -> None:
        self._store, self._line, self._reads = store, line, reads

    async def put_organiser(self, organiser: Organiser) -> bool:
        query = Query("put_organiser", [(organiser.id, organiser.name, organiser.created_at_us)])
        note = _note("put_organiser", organiser=organiser.id)
        return bool(await self._line.submit(RunStatements((query,), note, organiser.created_at_us)))

    async def organisers(self, after: str = "", limit: int = 100) -> list[Organiser]:
        return [Organiser(*row) for row in await self._store.read(Query("organisers_page", params=(after, limit)))]

    async def organiser(self, organiser_id: str) -> Organiser | None:
        rows = await self._reads["organisers_by_id"].read(organiser_id)
        return Organiser(*rows[0]) if rows else None

    async def add_staff(self, staff: Staff) -> bool:
        note = _note("add_staff", organiser=staff.organiser_id, staff=staff.id, role=staff.role)
        return bool(await self._line.submit(RunStatements((_adding(staff),), note, staff.created_at_us)))

    async def staff(self, staff_id: str) -> Staff | None:
        rows = await self._store.read(Query("staff_by_id", params=(staff_id,)))
        return read_staff(rows[0]) if rows else None

    async def staff_by_email(self, email: str) -> Staff | None:
        rows = await self._store.read(Query("staff_by_email", params=(email,)))
        return read_staff(rows[0]) if rows else None

    async def staff_of(self, organiser_id: str, limit: int = 200) -> list[Staff]:
        return [
            read_staff(row) for row in await self._store.read(Query("staff_of_organiser", params=(organiser_id, limit)))
        ]

    async def set_role(self, organiser_id: str, staff_id: str, role: Role, by: str, now_us: int) -> Staff:
        changes = (
            Query("set_role", [(staff_id, organiser_id, role.value, now_us)]),
            Query("drop_sessions_of", [(staff_id,)]),
        )
        note = _note("set_role", organiser=organiser_id, staff=staff_id, role=role, by=by)
        return await self._change_team(organiser_id, staff_id, changes, note, now_us, still_owner=role is Role.OWNER)

    async def remove_staff(self, organiser_id: str, staff_id: str, by: str, now_us: int) -> None:
        changes = (
            Query("drop_staff", [(staff_id, organiser_id)]),
            Query("drop_sessions_of", [(staff_id,)]),
            Query("drop_recovery_codes", [(staff_id,)]),
        )
        note = _note("remove_staff", organiser=organiser_id, staff=staff_id, by=by)
        await self._change_team(organiser_id, staff_id, changes, note, now_us, still_owner=False)

    async def _change_team(
        self, organiser_id: str, staff_id: str, changes: Sequence[Query], note: str, now_us: int, *, still_owner: bool
    ) -> Staff:
        def run() -> Program[Staff | Exception]:
            return _change_team(organiser_id, staff_id, changes, still_owner=still_owner)

        changed = await self._line.submit(RunProgram(lambda facts: run(), now_us, note=note))
        return cast(Staff, changed)

    async def change_password(self, staff_id: str, password_hash: str, old_hash: str, now_us: int) -> bool:
        query = Query("set_password", [(staff_id, password_hash, old_hash, now_us)])
        return bool(await self._line.submit(RunStatements((query,), _note("set_password", staff=staff_id), now_us)))

    async def enrol_totp(
        self, staff_id: str, sealed: str, old_sealed: str, step: int, recovery: Sequence[str], now_us: int
    ) -> bool:
        def run() -> Program[bool]:
            done = yield Query("set_totp", [(staff_id, sealed, old_sealed, step, now_us)])
            if done:
                yield Query("drop_recovery_codes", [(staff_id,)])
                if recovery:
                    yield Query("add_recovery_codes", sorted((staff_id, code) for code in recovery))
            return bool(done)

        note = _note("enrol_totp", staff=staff_id)
        return cast(bool, await self._line.submit(RunProgram(lambda facts: run(), now_us, note=note)))

    async def use_totp_step(self, staff_id: str, step: int) -> bool:
        return bool(await self._line.submit(RunStatements((Query("use_totp_step", [(staff_id, step)]),))))

    async def use_recovery_code(self, staff_id: str, code_hash: str) -> bool:
        return bool(await self._line.submit(RunStatements((Query("use_recovery_code", [(staff_id, code_hash)]),))))

    # -- invitations and API keys ------------------------------------------------------------------------------------

    async def add_invitation(self, invitation: Invitation, secret_hash: str) -> None:
        one = invitation
        row = (one.id, secret_hash, one.organiser_id, one.email, one.role.value, one.made_by, one.staff_id)
        queries = (
            Query("drop_invitations_for", [(one.organiser_id, one.email)]),
            Query("add_invitation", [(*row, one.created_at_us, one.ends_at_us)]),
        )
        note = _note("invite", organiser=one.organiser_id, invitation=one.id, role=one.role, by=one.made_by)
        await self._line.submit(RunStatements(queries, note, one.created_at_us))

    async def open_invitation(self, secret_hash: str, now_us: int) -> Invitation | None:
        rows = await self._store.read(Query("open_invitation", params=(secret_hash, now_us)))
        return _invitation(rows[0]) if rows else None

    async def invitations_of(self, organiser_id: str, now_us: int, limit: int = 200) -> list[Invitation]:
        rows = await self._store.read(Query("open_invitations_of", params=(organiser_id, now_us, limit)))
        return [_invitation(row) for row in rows]

    async def drop_invitation(self, organiser_id: str, invitation_id: str) -> bool:
        return bool(
            await self._line.submit(RunStatements((Query("drop_invitation", [(invitation_id, organiser_id)]),)))
        )

    async def accept(self, secret_hash: str, new: Staff, now_us: int) -> Staff | None:
        note = _note("accept_invitation", organiser=new.organiser_id, staff=new.id)
        accepted = await self._line.submit(
            RunProgram(lambda facts: _accept(secret_hash, new, now_us), now_us, note=note)
        )
        return cast(Staff | None, accepted)

    async def add_api_key(self, key: ApiKey, secret_hash: str) -> None:
        scopes = msgspec.json.encode(key.scopes).decode()
        row = (key.id, secret_hash, key.organiser_id, key.name, scopes, key.made_by, key.created_at_us, key.ends_at_us)
        note = _note("add_api_key", organiser=key.organiser_id, key=key.id, by=key.made_by)
        await self._line.submit(RunStatements((Query("add_api_key", [row]),), note, key.created_at_us))

    async def api_key(self, secret_hash: str) -> ApiKey | None:
        rows = await self._store.read(Query("api_key_by_hash", params=(secret_hash,)))
        return _api_key(rows[0]) if rows else None

    async def api_keys_of(self, organiser_id: str, limit: int = 200) -> list[ApiKey]:
        return [_api_key(row) for row in await self._store.read(Query("api_keys_of", params=(organiser_id, limit)))]

    async def drop_api_key(self, organiser_id: str, key_id: str, by: str, now_us: int) -> bool:
        note = _note("drop_api_key", organiser=organiser_id, key=key_id, by=by)
        return bool(
            await self._line.submit(
                RunStatements((Query("drop_api_key", [(key_id, organiser_id)]),), note, now_us=now_us)
            )
        )

    async def touch_api_key(self, key_id: str, now_us: int) -> None:
        await self._line.submit(RunStatements((Query("touch_api_key", [(key_id, now_us)]),), now_us=now_us))

    # -- sessions ----------------------------------------------------------------------------------------------------

    async def start_session(self, session: Session, secret_hash: str, replaces: Session | None = None) -> None:
        one = session
        row = (one.id, secret_hash, one.kind.value, one.subject, one.stage.value, one.created_at_us, one.ends_at_us)
        queries = [Query("drop_session", [(replaces.id, replaces.subject)])] if replaces is not None else []
        queries.append(Query("add_session", [(*row, one.idle_us, one.agent)]))
        await self._line.submit(RunStatements(tuple(queries), now_us=one.created_at_us))

    async def session(self, secret_hash: str) -> Session | None:
        rows = await self._store.read(Query("session_by_hash", params=(secret_hash,)))
        found = _session(rows[0]) if rows else None
        return None if found is None or (found.kind is SubjectKind.STAFF and found.role is None) else found

    async def sessions_of(self, subject: str, now_us: int, limit: int = 100) -> list[Session]:
        rows = await self._store.read(Query("sessions_of", params=(subject, now_us, limit)))
        return [_session(row) for row in rows]

    async def touch_session(self, session_id: str, now_us: int) -> None:
        await self._line.submit(RunStatements((Query("touch_session", [(session_id, now_us)]),), now_us=now_us))

    async def end_session(self, subject: str, session_id: str) -> bool:
        return bool(await self._line.submit(RunStatements((Query("drop_session", [(session_id, subject)]),))))

    async def end_sessions(self, subject: str) -> int:
        return len(await self._line.submit(RunStatements((Query("drop_sessions_of", [(subject,)]),))))

    # -- fans -------------------------------------------------------------------------------------------------------

    async def add_fan(self, fan: Fan) -> bool:
        query = Query("add_fan", [(fan.id, fan.email, fan.created_at_us)])
        return bool(await self._line.submit(RunStatements((query,), now_us=fan.created_at_us)))

    async def fan(self, fan_id: str) -> Fan | None:
        rows = await self._store.read(Query("fan_by_id", params=(fan_id,)))
        return Fan(*rows[0]) if rows else None

    async def fan_of_address(self, fan: Fan) -> Fan:
        found = await self._line.submit(RunProgram(lambda facts: _fan_of_address(fan), fan.created_at_us))
        return cast(Fan, found)

    async def add_magic_link(
        self, secret_hash: str, browser_hash: str, email: str, now_us: int, ends_at_us: int
    ) -> None:
        row = (secret_hash, browser_hash, email, now_us, ends_at_us)
        await self._line.submit(RunStatements((Query("add_magic_link", [row]),), now_us=now_us))

    async def use_magic_link(self, secret_hash: str, browser_hash: str, now_us: int) -> str:
        query = Query("use_magic_link", [(secret_hash, browser_hash, now_us)])
        rows = await self._line.submit(RunStatements((query,), now_us=now_us))
        return str(rows[0][0]) if rows else ""

    async def use_confirmed_link(self, secret_hash: str, now_us: int) -> str:
        query = Query("use_confirmed_link", [(secret_hash, now_us)])
        rows = await self._line.submit(RunStatements((query,), now_us=now_us))
        return str(rows[0][0]) if rows else ""

    async def open_magic_link(self, secret_hash: str, now_us: int) -> str:
        rows = await self._store.read(Query("open_magic_link", params=(secret_hash, now_us)))
        return str(rows[0][0]) if rows else ""

    async def names_of_address(self, email: str) -> list[str]:
        rows = await self._store.read(Query("names_of_address", params=(email, MAX_NAMES))) if email else []
        return [str(row[0]) for row in rows]

    async def is_reached_at(self, fan: str, email: str) -> bool:
        return bool(email and await self._store.read(Query("is_reached_at", params=(fan, email))))

    async def purchases_of_address(self, email: str) -> list[Booking]:
        rows = await self._store.read(Query("purchases_of_address", params=(email,))) if email else []
        return [booking_of(row) for row in rows]

    async def purchases_of(self, fans: Sequence[str]) -> list[Booking]:
        if not fans:
            return []
        rows = await self._store.read(Query("purchases_of", [(fan,) for fan in dict.fromkeys(fans)]))
        return [booking_of(row) for row in rows]

    async def erase_fan(self, fan_id: str, now_us: int) -> bool:
        return cast(bool, await self._line.submit(RunProgram(lambda facts: _erase(fan_id, now_us, facts), now_us)))

    async def entries_of(self, fans: Sequence[str]) -> list[WaitlistEntry]:
        rows = await self._store.read(Query("entries_in_line", [(fan,) for fan in sorted(set(fans))]))
        return [entry_of(row) for row in rows]

    async def purge_people(self, now_us: int, limit: int = 1_000) -> None:
        queries = (
            Query("drop_old_sessions", params=(now_us, limit)),
            Query("drop_old_links", params=(now_us, limit)),
            Query("drop_sent_account_mail", params=(limit,)),
        )
        await self._line.submit(RunStatements(queries, now_us=now_us))


def _change_team(
    organiser_id: str, staff_id: str, changes: Sequence[Query], *, still_owner: bool
) -> Program[Staff | Exception]:
    yield Query("lock_organiser", params=(organiser_id,))
    rows = yield Query("staff_by_id", params=(staff_id,))
    if not rows or rows[0][1] != organiser_id:
        return PersonNotFound(f"{staff_id} is not in this team", staff=staff_id)
    if not still_owner:
        owners = yield Query("owners_of", params=(organiser_id,))
        if [row[0] for row in owners] == [staff_id]:
            return LastOwner("somebody must own the organiser: make another member an owner first")
    for query in changes:  # noqa: UP028 - `yield from` a sequence cannot be sent the rows
        yield query
    rows = yield Query("staff_by_id", params=(staff_id,))
    return read_staff(rows[0]) if rows else Staff(staff_id, organiser_id, "", "", Role.READ_ONLY)


def _accept(secret_hash: str, new: Staff, now_us: int) -> Program[Staff | None]:
    rows = yield Query("use_invitation", [(secret_hash, now_us)])  # first: of two callers, one waits here and loses
    if not rows:
        return None
    invitation = _invitation(rows[0])
    if invitation.staff_id:
        yield Query("reset_staff", [(invitation.staff_id, new.password_hash, now_us)])
        yield Query("drop_sessions_of", [(invitation.staff_id,)])
        yield Query("drop_recovery_codes", [(invitation.staff_id,)])
    else:
        member = msgspec.structs.replace(
            new, organiser_id=invitation.organiser_id, email=invitation.email, role=invitation.role
        )
        if not (yield _adding(member)):  # raised, not returned: the invitation stays unused
            raise AlreadyMember("this address has an account already; sign in with it")
    rows = yield Query("staff_by_id", params=(invitation.staff_id or new.id,))
    return read_staff(rows[0]) if rows else None


def _fan_of_address(fan: Fan) -> Program[Fan]:
    yield Query("add_fan", [(fan.id, fan.email, fan.created_at_us)])
    rows = yield Query("fan_by_email", params=(fan.email,))
    return Fan(*rows[0])


def _erase(fan_id: str, now_us: int, facts: list[Fact]) -> Program[bool]:
    rows = yield Query("fan_by_id", params=(fan_id,))
    if not rows:
        return False
    email = str(rows[0][1])
    known_as = {(fan_id,)}
    if email:
        yield Query("drop_links_to", [(email,)])
        yield Query("drop_signups_of", [(email,)])
        yield Query("forget_transfers_to", [(email, now_us)])
        known_as |= {(str(row[0]),) for row in (yield Query("names_of_address", params=(email, MAX_ERASED)))}
    names = sorted(known_as)
    for query in (
        "forget_messages_to",
        "drop_contacts",
        "drop_phone_codes",
        "drop_name_tails",
        "drop_push",
        "drop_in_app",
    ):
        yield Query(query, names)
    for row in (yield Query("entries_in_line", names)):  # an erased fan must get no offer
        yield from leave(row[1], row[3], now_us, facts)  # refused only while its offer is being paid
    yield Query("drop_sessions_of", [(fan_id,)])
    return bool((yield Query("erase_fan", [(fan_id, now_us)])))


def _adding(staff: Staff) -> Query:
    one = staff
    row = (one.id, one.organiser_id, one.email, one.name, one.role.value, one.password_hash, one.created_at_us)
    return Query("add_staff", [row])


def _note(act: str, **about: str) -> str:
    return msgspec.json.encode({"act": act, **about}).decode()


def read_staff(row: Row) -> Staff:
    return Staff(row[0], row[1], row[2], row[3], Role(row[4]), *row[5:9])


def _invitation(row: Row) -> Invitation:
    return Invitation(row[0], row[1], row[2], Role(row[3]), *row[4:8])


def _api_key(row: Row) -> ApiKey:
    role = Role(row[8]) if row[8] else None
    return ApiKey(row[0], row[1], row[2], _names.decode(row[3]), row[4], row[5], row[6], row[7], role)


def _session(row: Row) -> Session:
    role = Role(row[10]) if row[10] else None
    kind, stage = SubjectKind(row[1]), Stage(row[3])
    return Session(
        row[0], kind, row[2], stage, row[4], row[5], row[6], row[7], row[8], organiser_id=row[9] or "", role=role
    )
