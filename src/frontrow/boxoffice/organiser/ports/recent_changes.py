"""The port of recent changes: it says when an organiser must not be shown a replica."""

from typing import Protocol


class RecentChanges(Protocol):
    """Which organisers have just changed something."""

    async def note(self, organiser_id: str) -> None:
        """This organiser changed something, and it is committed."""
        ...

    async def has(self, organiser_id: str) -> bool:
        """Whether this organiser may have changed something that a replica does not show yet."""
        ...
