"""Staff sign-in: password, then TOTP or a recovery code; enrolment of the second factor; changes of password.

Until the second factor is proven, a session can only prove it. Whatever was wrong, the response and the work are the
same. A TOTP code works once. After that its time step and all earlier steps are used up.
"""

import hmac
import secrets
from typing import Final

import msgspec

from frontrow.boxoffice.people.model.email_addresses import checked_email
from frontrow.boxoffice.people.model.password_rules import checked_password
from frontrow.boxoffice.people.model.people import (
    NotAllowed,
    PersonNotFound,
    Session,
    Staff,
    Stage,
    SubjectKind,
    WrongCredentials,
    secret_hash,
)
from frontrow.boxoffice.people.passwords import PasswordCheck, Passwords
from frontrow.boxoffice.people.ports import PeopleBook
from frontrow.boxoffice.people.sessions import Sessions, SignedIn
from frontrow.boxoffice.people.sign_in_limits import SignInLimits
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import InvalidInput
from frontrow.shared.ids import ALPHABET
from frontrow.shared.vault import SealBroken, Vault

STEP_S: Final = 30
DRIFT_STEPS: Final = 1  # a clock may be half a minute fast or slow
RECOVERY_CODES: Final = 10
RECOVERY_CHARS: Final = 16  # 80 bits
ENROL_LIFE_S: Final = 600
MAX_TYPED_CHARS: Final = 1_024


class Enrolment(msgspec.Struct, frozen=True):
    """What an authenticator app needs, and the sealed text that finishes the enrolment."""

    secret: str
    uri: str
    pending: str

    def __repr__(self) -> str:
        return "Enrolment(…)"


class StaffAccounts:
    """Signs members of staff in and manages their credentials."""

    def __init__(
        self,
        book: PeopleBook,
        sessions: Sessions,
        passwords: Passwords,
        limits: SignInLimits,
        vault: Vault,
        clock: Clock,
        issuer: str = "Frontrow",
    ) -> None:
        self._book, self._sessions, self._passwords = book, sessions, passwords
        self._limits, self._vault, self._clock, self._issuer = limits, vault, clock, issuer

    async def sign_in(
        self, email: str, password: str, code: str, ip: str, *, agent: str = "", replaces: Session | None = None
    ) -> SignedIn:
        """Start a session: full with the right code, else only for the second step.

        Raises `WrongCredentials` or `TooManyTries`.
        """
        account = _account(email)
        await self._limits.ip.count_attempt(ip)
        await self._limits.account.count_attempt(account)
        staff = await self._book.staff_by_email(account)
        typed = password[:MAX_TYPED_CHARS]
        verified = await self._passwords.verify(staff.password_hash if staff else None, typed)
        if verified is PasswordCheck.WRONG:
            raise WrongCredentials
        assert staff is not None
        stage = Stage.TOTP if staff.totp_sealed else Stage.ENROL
        if code and staff.totp_sealed:
            await self._check_code(staff, code)
            stage = Stage.FULL
        await self._limits.account.forgive_attempt(account)
        await self._limits.ip.forgive_attempt(ip)
        if verified is PasswordCheck.OLD_FORM or self._passwords.needs_rehash(staff.password_hash):
            new_hash = await self._passwords.hash(typed)
            await self._book.change_password(staff.id, new_hash, staff.password_hash, self._clock())
        return await self._sessions.start(SubjectKind.STAFF, staff.id, stage=stage, agent=agent, replaces=replaces)

    async def complete_second_step(self, session: Session, code: str) -> SignedIn:
        """Replace a session that waits for a code by a full one."""
        staff = await self._member(session)
        if session.stage is not Stage.TOTP:
            raise NotAllowed("this session does not wait for a code")
        await self._check_code(staff, code)
        return await self._sessions.start(
            SubjectKind.STAFF, staff.id, agent=session.agent, replaces=session, stage=Stage.FULL
        )

    async def begin_enrolment(self, session: Session, password: str) -> Enrolment:
        """A new TOTP secret, not in force until it is confirmed. A full session needs the password again."""
        staff = await self._member(session)
        if session.stage is Stage.TOTP:
            raise NotAllowed("prove the second factor you have before setting up another")
        if session.stage is Stage.FULL:
            await self._check_password(staff, password)
        import pyotp  # a room that is served alone comes without it

        secret = pyotp.random_base32()
        ends_at_us = self._clock() + ENROL_LIFE_S * US_PER_S
        return self._enrolment(staff, secret, self._vault.seal(f"{ends_at_us}:{secret}", f"enrol:{session.id}"))

    async def reload_enrolment(self, session: Session, pending: str) -> Enrolment:
        """The pending enrolment, to show it again after a wrong code. Raises `SealBroken` when it has expired."""
        return self._enrolment(await self._member(session), self._pending_secret(session, pending), pending)

    def _enrolment(self, staff: Staff, secret: str, pending: str) -> Enrolment:
        import pyotp

        uri = pyotp.TOTP(secret).provisioning_uri(name=staff.email, issuer_name=self._issuer)
        return Enrolment(secret, uri, pending)

    def _pending_secret(self, session: Session, pending: str) -> str:
        ends_at_us, _, secret = self._vault.open(pending, f"enrol:{session.id}").partition(":")
        if self._clock() >= int(ends_at_us):
            raise SealBroken("this set-up has run out; begin again")
        return secret

    async def finish_enrolment(self, session: Session, pending: str, code: str) -> tuple[SignedIn, list[str]]:
        """Put the second factor in force. Returns a full session (all others end) and recovery codes, shown once."""
        staff = await self._member(session)
        if session.stage is Stage.TOTP:
            raise NotAllowed("prove the second factor you have before setting up another")
        secret = self._pending_secret(session, pending)
        await self._limits.code.count_attempt(staff.id)
        step = matching_step(secret, code, self._clock())
        if step is None:
            raise WrongCredentials
        await self._limits.code.forgive_attempt(staff.id)
        codes = ["".join(secrets.choice(ALPHABET) for _ in range(RECOVERY_CHARS)) for _ in range(RECOVERY_CODES)]
        hashes = [_recovery_hash(staff.id, one) for one in codes]
        sealed = self._vault.seal(secret, f"totp:{staff.id}")
        if not await self._book.enrol_totp(staff.id, sealed, staff.totp_sealed, step, hashes, self._clock()):
            raise NotAllowed("the second factor was changed elsewhere at this moment; begin again")
        return await self._sessions.replace_all(session), [f"{one[:8]}-{one[8:]}" for one in codes]

    async def change_password(self, session: Session, old: str, new: str) -> SignedIn:
        """Change the password. Every other session ends and this one continues with a new secret."""
        staff = await self._member(session)
        await self._check_password(staff, old)
        password = checked_password(new, staff.email)
        password_hash = await self._passwords.hash(password)
        if not await self._book.change_password(staff.id, password_hash, staff.password_hash, self._clock()):
            raise WrongCredentials
        return await self._sessions.replace_all(session)

    async def member(self, staff_id: str) -> Staff:
        staff = await self._book.staff(staff_id)
        if staff is None:
            raise PersonNotFound("this member is gone", staff=staff_id)
        return staff

    async def _member(self, session: Session) -> Staff:
        if session.kind is not SubjectKind.STAFF:
            raise NotAllowed("this is for members of a team")
        return await self.member(session.subject)

    async def _check_password(self, staff: Staff, password: str) -> None:
        await self._limits.account.count_attempt(staff.email)
        if await self._passwords.verify(staff.password_hash, password[:MAX_TYPED_CHARS]) is PasswordCheck.WRONG:
            raise WrongCredentials
        await self._limits.account.forgive_attempt(staff.email)

    async def _check_code(self, staff: Staff, code: str) -> None:
        """Count one attempt, then use up one TOTP step or one recovery code."""
        await self._limits.code.count_attempt(staff.id)
        typed = "".join(letter for letter in code[:MAX_TYPED_CHARS] if letter.isalnum()).upper()
        if len(typed) == RECOVERY_CHARS:
            good = await self._book.use_recovery_code(staff.id, _recovery_hash(staff.id, typed))
        else:
            secret = self._vault.open(staff.totp_sealed, f"totp:{staff.id}")
            step = matching_step(secret, typed, self._clock())
            good = step is not None and await self._book.use_totp_step(staff.id, step)
        if not good:
            raise WrongCredentials
        await self._limits.code.forgive_attempt(staff.id)


def matching_step(secret: str, code: str, now_us: int) -> int | None:
    """The time step of this code, if it is near now. All steps are compared, so timing reveals nothing."""
    import pyotp

    totp, found = pyotp.TOTP(secret), None
    now_step = now_us // (STEP_S * US_PER_S)
    for step in range(now_step - DRIFT_STEPS, now_step + DRIFT_STEPS + 1):
        if hmac.compare_digest(totp.generate_otp(step).encode(), code.strip().encode("utf-8", "surrogatepass")):
            found = step
    return found


def _account(email: str) -> str:
    """The key under which attempts are counted. Invalid addresses share one and are treated like any other."""
    try:
        return checked_email(email)
    except InvalidInput:
        return "nobody"


def _recovery_hash(staff_id: str, code: str) -> str:
    return secret_hash(f"recovery {staff_id}", code)
