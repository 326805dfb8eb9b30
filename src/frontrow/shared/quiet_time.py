"""When nothing is due for any background job of a process."""

from typing import Protocol


class QuietTime(Protocol):
    """Knows when nothing is due for any job of this process. A ledger's `due_work` is one."""

    async def wait_while_quiet(self) -> None:
        """Return at once, or after a quiet time as soon as there may be work for somebody."""

    def wake(self) -> None:
        """End every `wait_while_quiet`."""
