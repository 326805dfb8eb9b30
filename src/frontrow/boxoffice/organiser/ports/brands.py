"""The port of organisations' brands."""

from typing import Protocol

from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.organiser.model.brands import Brand, Logo


class BrandBook(Protocol):
    """The brand of each organisation that has one (`ledger.brands`).

    Colour and logo are written apart, so neither undoes a change of the other.
    """

    async def of(self, organiser_id: str) -> Brand | None: ...

    async def changed(self, after: tuple[int, str], limit: int) -> list[Brand]:
        """Brands by (time of their last change, organisation), from after that one on."""
        ...

    async def put_colour(self, organiser_id: str, colour: str, change: Change) -> None: ...

    async def put_logo(self, organiser_id: str, logo: Logo | None, replaced: Logo | None, change: Change) -> None:
        """Show this logo, or none. The replaced one is deleted later if nothing else shows it."""
        ...
