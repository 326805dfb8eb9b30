"""The port of people: organisers, staff, fans, sessions, one-time links, API keys. Secrets are passed as hashes."""

from collections.abc import Sequence
from typing import Protocol

from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.people.model.people import ApiKey, Fan, Invitation, Organiser, Session, Staff
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.tickets.ports.transfers import TransferBook
from frontrow.boxoffice.waitlist.model.waitlist import WaitlistEntry


class PeopleBook(Protocol):
    """People in the ledger (`ledger.people`).

    Every change is one transaction. Of many racing callers exactly one uses a one-time secret.
    """

    # -- organisers and their staff
    async def put_organiser(self, organiser: Organiser) -> bool:
        """False when one with this id exists."""
        ...

    async def organiser(self, organiser_id: str) -> Organiser | None: ...

    async def organisers(self, after: str = "", limit: int = 100) -> list[Organiser]: ...

    async def add_staff(self, staff: Staff) -> bool:
        """False when the address already has an account."""
        ...

    async def staff(self, staff_id: str) -> Staff | None: ...

    async def staff_by_email(self, email: str) -> Staff | None: ...

    async def staff_of(self, organiser_id: str, limit: int = 200) -> list[Staff]: ...

    async def set_role(self, organiser_id: str, staff_id: str, role: Role, by: str, now_us: int) -> Staff:
        """Change the member's role and end all their sessions. `LastOwner` when nobody would own the organiser."""
        ...

    async def remove_staff(self, organiser_id: str, staff_id: str, by: str, now_us: int) -> None:
        """Remove the member with sessions, recovery codes and open resets. `LastOwner` as above."""
        ...

    async def change_password(self, staff_id: str, password_hash: str, old_hash: str, now_us: int) -> bool:
        """Replace the password if it is still `old_hash`. Returns whether it was."""
        ...

    async def enrol_totp(
        self, staff_id: str, sealed: str, old_sealed: str, step: int, recovery: Sequence[str], now_us: int
    ) -> bool:
        """Replace the second factor and the recovery codes. False when another was set in the meantime."""
        ...

    async def use_totp_step(self, staff_id: str, step: int) -> bool:
        """Use a time step. Exactly one caller gets True; earlier steps are used up with it."""
        ...

    async def use_recovery_code(self, staff_id: str, code_hash: str) -> bool: ...

    # -- invitations and API keys
    async def add_invitation(self, invitation: Invitation, secret_hash: str) -> None:
        """Add an invitation. Open invitations of this organiser to the same address end."""
        ...

    async def open_invitation(self, secret_hash: str, now_us: int) -> Invitation | None: ...

    async def invitations_of(self, organiser_id: str, now_us: int, limit: int = 200) -> list[Invitation]: ...

    async def drop_invitation(self, organiser_id: str, invitation_id: str) -> bool: ...

    async def accept(self, secret_hash: str, new: Staff, now_us: int) -> Staff | None:
        """Use the invitation and create the member (or set the new password), in one transaction and once."""
        ...

    async def add_api_key(self, key: ApiKey, secret_hash: str) -> None: ...

    async def api_key(self, secret_hash: str) -> ApiKey | None: ...

    async def api_keys_of(self, organiser_id: str, limit: int = 200) -> list[ApiKey]: ...

    async def drop_api_key(self, organiser_id: str, key_id: str, by: str, now_us: int) -> bool: ...

    async def touch_api_key(self, key_id: str, now_us: int) -> None: ...

    # -- sessions
    async def start_session(self, session: Session, secret_hash: str, replaces: Session | None = None) -> None:
        """Start a session. The one it replaces ends in the same transaction."""
        ...

    async def session(self, secret_hash: str) -> Session | None:
        """The session with its subject's current rights. None for a member who left."""
        ...

    async def sessions_of(self, subject: str, now_us: int, limit: int = 100) -> list[Session]: ...

    async def touch_session(self, session_id: str, now_us: int) -> None: ...

    async def end_session(self, subject: str, session_id: str) -> bool: ...

    async def end_sessions(self, subject: str) -> int: ...

    # -- fans
    async def add_fan(self, fan: Fan) -> bool: ...

    async def fan(self, fan_id: str) -> Fan | None: ...

    async def fan_of_address(self, fan: Fan) -> Fan:
        """The fan with this proven address. `fan` is added and returned when there was none."""
        ...

    async def add_magic_link(
        self, secret_hash: str, browser_hash: str, email: str, now_us: int, ends_at_us: int
    ) -> None: ...

    async def use_magic_link(self, secret_hash: str, browser_hash: str, now_us: int) -> str:
        """The proven address; empty when the link is spent or the browser is another."""
        ...

    async def use_confirmed_link(self, secret_hash: str, now_us: int) -> str:
        """The proven address, whichever browser asked for the link; empty when it is spent."""
        ...

    async def open_magic_link(self, secret_hash: str, now_us: int) -> str:
        """The address that a link was sent to which still works; empty when it is spent."""
        ...

    async def names_of_address(self, email: str) -> list[str]:
        """Guests who gave this address, latest first, up to a bound. Call it only for a proven address."""
        ...

    async def is_reached_at(self, fan: str, email: str) -> bool:
        """Whether this guest gave this address."""
        ...

    async def purchases_of_address(self, email: str) -> list[Booking]:
        """Bookings that guests made with this address, newest first."""
        ...

    async def purchases_of(self, fans: Sequence[str]) -> list[Booking]:
        """Confirmed, cancelled and refunded bookings, newest first."""
        ...

    async def erase_fan(self, fan_id: str, now_us: int) -> bool:
        """Erase address, contacts, devices, messages, links and sessions, and leave every waitlist.

        This includes guests with the fan's proven address. Bookings and payments stay.
        """
        ...

    async def entries_of(self, fans: Sequence[str]) -> list[WaitlistEntry]:
        """The waitlist entries of these fans in all events."""
        ...

    async def purge_people(self, now_us: int, limit: int = 1_000) -> None:
        """Delete sessions, links and account mails that can no longer be used."""
        ...


class PeopleLedger(Ledger, Protocol):
    """The ledger as accounts use it."""

    @property
    def messages(self) -> MessageBook: ...

    @property
    def people(self) -> PeopleBook: ...

    @property
    def transfers(self) -> TransferBook: ...
