"""Acts on what the channels' providers report: each report once, in one transaction with the note that it came.

A bounce, a complaint or STOP blocks the address; START opens it again. After a crash in between the provider's next
delivery of the report is handled.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from frontrow.boxoffice.facts.ports import PlannedWrite
from frontrow.boxoffice.messages.model.channel_reports import BLOCKING, ChannelReport, ReportKind
from frontrow.boxoffice.messages.ports.channels import ReportReader
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.core.clock import Clock
from frontrow.core.errors import NotFound
from frontrow.shared.log_lines import ADDRESS_BLOCKED, ADDRESS_OPENED, MESSAGE_DELAYED


class ChannelReports:
    """Reads and handles reports. `heard` counts them by channel and kind."""

    def __init__(self, book: MessageBook, readers: Sequence[ReportReader], clock: Clock) -> None:
        self._book, self._clock = book, clock
        self._readers = {reader.name: reader for reader in readers}
        self.heard: Counter[tuple[str, str]] = Counter()

    async def handle(self, name: str, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Read a request of this provider and act on what is new. Returns how many reports were new."""
        reader = self._readers.get(name)
        if reader is None:
            raise NotFound(f"this server takes no reports of {name[:40]!r}")
        reports = await reader.read(url, body, headers, self._clock())
        return sum([await self._act(name, report) for report in reports])

    async def _act(self, name: str, report: ChannelReport) -> bool:
        now_us = self._clock()
        if not await self._book.once(f"reports of {name}", report.id, self._writes(report, now_us), now_us):
            return False
        self.heard[report.channel, report.kind.value] += 1
        if report.kind in BLOCKING:
            ADDRESS_BLOCKED(channel=report.channel, reason=report.kind.value, about=report.message_id)
        elif report.kind is ReportKind.RESUMED:
            ADDRESS_OPENED(channel=report.channel)
        elif report.kind is ReportKind.DELAYED:
            MESSAGE_DELAYED(channel=report.channel, about=report.message_id)
        return True

    def _writes(self, report: ChannelReport, now_us: int) -> Sequence[PlannedWrite]:
        if not report.address:
            return ()
        if report.kind in BLOCKING:
            return self._book.make_block_writes(report.channel, report.address, report.kind, report.detail, now_us)
        if report.kind is ReportKind.RESUMED:
            return self._book.make_unblock_writes(report.channel, report.address, ReportKind.STOPPED)
        return ()
