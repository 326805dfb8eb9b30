"""The ports of presales: notifications people asked for, registrations, and the codes that a draw gives."""

from collections.abc import Callable, Sequence
from typing import Protocol

from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.messages.model.messages import NewDelivery
from frontrow.boxoffice.presale.model import Presale, Signup, SignupState


class SignupBook(Protocol):
    """Sign-ups and presales as the ledger keeps them. Each method is one transaction."""

    async def save_signup(
        self, signup: Signup, delivery: Callable[[str], NewDelivery] | None
    ) -> tuple[str, SignupState]:
        """Keep the sign-up, or find the one of the same address. Returns its id and state.

        `delivery` makes the mail from the id. It is queued in the same transaction, unless the sign-up was decided."""
        ...

    async def signup(self, signup_id: str) -> Signup | None: ...

    async def of_address(self, email: str) -> list[Signup]: ...

    async def confirm(self, signup_id: str, now_us: int) -> bool:
        """The address is proven. False: it was already, or it is too late."""
        ...

    async def drop(self, signup_id: str) -> bool:
        """Never write to this address about the event again. False if there was nothing to drop."""
        ...

    async def drop_unconfirmed(self, before_us: int) -> None: ...

    async def counts(self, event_id: str) -> dict[tuple[str, str], int]:
        """(purpose, state) -> number of sign-ups."""
        ...

    async def events_with_notices(self, now_us: int) -> list[str]:
        """Ids of events that somebody wants to be notified about."""
        ...

    async def send_notices(
        self, event_id: str, delivery: Callable[[Signup], NewDelivery | None], limit: int, now_us: int
    ) -> int:
        """Queue the mails of at most `limit` waiting notices and mark them sent. Returns how many.

        A notice whose `delivery` is None is marked without a mail."""
        ...

    async def put_presale(self, presale: Presale, now_us: int) -> bool:
        """Open registration or change its times. False when it is drawn, or when order or lane would change."""
        ...

    async def presale(self, event_id: str) -> Presale | None: ...

    async def drawing(self, now_us: int) -> list[Presale]:
        """Presales whose draw is not finished."""
        ...

    async def begin_draw(self, event_id: str, beacon: str, batches: str, now_us: int) -> bool:
        """Close registration and begin to draw. False when it is still open, or already drawn."""
        ...

    async def registrations(self, event_id: str) -> list[Signup]:
        """Every confirmed registration of an event."""
        ...

    async def write_draw_results(
        self, results: Sequence[tuple[str, SignupState, int]], deliveries: Sequence[NewDelivery], now_us: int
    ) -> None:
        """Write what the draw decided for these and queue their mails. Repeating it changes nothing."""
        ...

    async def finish_draw(self, event_id: str, last_rank: str, now_us: int) -> None: ...


class CodeMaker(Protocol):
    """Creates presale codes. A code carries its own signature, so only its number is stored."""

    async def reserve(self, editor: Editor, event: Event, lane: str, count: int) -> int:
        """Reserve `count` new numbers for the organiser and return the first."""
        ...

    def text(self, event: Event, lane: str, number: int) -> str:
        """The code with this number."""
        ...

    def lane_names(self, event: Event) -> Sequence[str]: ...
