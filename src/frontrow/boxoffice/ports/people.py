"""The ledger's book of people: organisers, staff, fans, sessions, one-time links, API keys. Secrets come as hashes."""

from collections.abc import Sequence
from typing import Protocol

from frontrow.boxoffice.model.bookings import Booking
from frontrow.boxoffice.model.people import ApiKey, Fan, Invitation, Organiser, Role, Session, Staff
from frontrow.boxoffice.model.waitlist import Entry


class PeopleBook(Protocol):
    """Every change is one transaction; every one-time thing is used by exactly one of many racing callers."""

    # -- organisers and their staff
    async def put_organiser(self, organiser: Organiser) -> bool:
        """False when there is one with this id."""
        ...

    async def organiser(self, organiser_id: str) -> Organiser | None: ...

    async def organisers(self, after: str = "", limit: int = 100) -> list[Organiser]: ...

    async def add_staff(self, staff: Staff) -> bool:
        """False when the address has an account already."""
        ...

    async def staff(self, staff_id: str) -> Staff | None: ...

    async def staff_by_email(self, email: str) -> Staff | None: ...

    async def staff_of(self, organiser_id: str, limit: int = 200) -> list[Staff]: ...

    async def set_role(self, organiser_id: str, staff_id: str, role: Role, by: str, now_us: int) -> Staff:
        """The member with the new role, all sessions ended. `LastOwner` when nobody would own the organiser then."""
        ...

    async def remove_staff(self, organiser_id: str, staff_id: str, by: str, now_us: int) -> None:
        """The member is gone, with sessions, recovery codes and open resets; `LastOwner` as above."""
        ...

    async def change_password(self, staff_id: str, password_hash: str, old_hash: str, now_us: int) -> bool:
        """Whether the password was still `old_hash` and is the new one now."""
        ...

    async def enrol_totp(
        self, staff_id: str, sealed: str, old_sealed: str, step: int, recovery: Sequence[str], now_us: int
    ) -> bool:
        """A new second factor and recovery codes in place of the old, unless another was set meanwhile."""
        ...

    async def use_totp_step(self, staff_id: str, step: int) -> bool:
        """Exactly one caller hears True for a step; earlier steps are spent with it."""
        ...

    async def use_recovery_code(self, staff_id: str, code_hash: str) -> bool: ...

    async def recovery_codes_left(self, staff_id: str) -> int: ...

    # -- invitations and API keys
    async def add_invitation(self, invitation: Invitation, secret_hash: str) -> None:
        """Open invitations of this organiser to the same address end with it."""
        ...

    async def open_invitation(self, secret_hash: str, now_us: int) -> Invitation | None: ...

    async def invitations_of(self, organiser_id: str, now_us: int, limit: int = 200) -> list[Invitation]: ...

    async def drop_invitation(self, organiser_id: str, invitation_id: str) -> bool: ...

    async def accept(self, secret_hash: str, new: Staff, now_us: int) -> Staff | None:
        """Use the invitation and make the member (or give it the new password): both or neither, once."""
        ...

    async def add_api_key(self, key: ApiKey, secret_hash: str) -> None: ...

    async def api_key(self, secret_hash: str) -> ApiKey | None: ...

    async def api_keys_of(self, organiser_id: str, limit: int = 200) -> list[ApiKey]: ...

    async def drop_api_key(self, organiser_id: str, key_id: str, by: str, now_us: int) -> bool: ...

    async def touch_api_key(self, key_id: str, now_us: int) -> None: ...

    # -- sessions
    async def start_session(self, session: Session, secret_hash: str, replaces: Session | None = None) -> None:
        """A new session; the one it replaces is gone in the same moment."""
        ...

    async def session(self, secret_hash: str) -> Session | None:
        """The session with what its subject may do now; a member who left has none."""
        ...

    async def sessions_of(self, subject: str, now_us: int, limit: int = 100) -> list[Session]: ...

    async def touch_session(self, session_id: str, now_us: int) -> None: ...

    async def end_session(self, subject: str, session_id: str) -> bool: ...

    async def end_sessions(self, subject: str) -> int: ...

    # -- fans
    async def add_fan(self, fan: Fan) -> bool: ...

    async def fan(self, fan_id: str) -> Fan | None: ...

    async def fan_of_address(self, fan: Fan) -> Fan:
        """The fan with this proven address; `fan` itself when there was none."""
        ...

    async def add_magic_link(
        self, secret_hash: str, browser_hash: str, email: str, now_us: int, ends_at_us: int
    ) -> None: ...

    async def use_magic_link(self, secret_hash: str, browser_hash: str, now_us: int) -> str:
        """The proven address; empty when the link is spent or the browser is another."""
        ...

    async def open_magic_link(self, secret_hash: str, now_us: int) -> bool: ...

    async def names_of_address(self, email: str) -> list[str]:
        """Guests and people of places who gave this address, the latest first, bounded. Ask only for a proven one."""
        ...

    async def is_reached_at(self, fan: str, email: str) -> bool:
        """Whether this guest or person of a place gave this address."""
        ...

    async def purchases_of_address(self, email: str) -> list[Booking]:
        """What guests and people of places bought with this address, newest first."""
        ...

    async def purchases_of(self, fans: Sequence[str]) -> list[Booking]:
        """Confirmed, cancelled and refunded bookings, newest first."""
        ...

    async def erase_fan(self, fan_id: str, now_us: int) -> bool:
        """Forget address, contacts, devices, messages, links and sessions, of the fan and of everybody reached at
        the fan's proven address, and leave every waitlist; bookings and money stay."""
        ...

    async def entries_of(self, fans: Sequence[str]) -> list[Entry]:
        """Where these fans wait, whatever the event."""
        ...

    async def purge_people(self, now_us: int, limit: int = 1_000) -> None:
        """Drop sessions, links and account mails nobody can use any more."""
        ...
