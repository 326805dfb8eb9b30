"""The check at the gate: verifies tickets offline, records every admission, and finds duplicates across gates.

Cheap checks run first: format, key, event, revocation, signature, rotating code. Then the gate checks whether it has
already admitted the ticket, or a newer one of the same seat. A ticket is accepted only after its signature is verified.
Where the event allows it, a ticket that was scanned at an exit is admitted again.
"""

import os
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from frontrow.boxoffice.gate.gate_bundle import Bundle, Revocations, check_revocations
from frontrow.boxoffice.gate.model.scans import (
    DuplicateScan,
    ReentryNotAllowed,
    Scan,
    Way,
    find_duplicates,
    later_than,
    order_scans,
)
from frontrow.boxoffice.seats.model.seat_names import seat_name
from frontrow.boxoffice.tickets.rotating_codes import is_rotating_code, ticket_secret
from frontrow.boxoffice.tickets.ticket_codes import Misread, ReadTicket, read_code, signed_text
from frontrow.core.errors import InvalidInput

MAX_LOG_LINES: Final = 2_000_000


class GateVerdict(StrEnum):
    """The result of a check."""

    WELCOME = "welcome"
    MISREAD = "misread"
    UNKNOWN_KEY = "unknown_key"
    OTHER_EVENT = "other_event"
    REVOKED = "revoked"
    FORGED = "forged"
    OLD_CODE = "old_code"
    REPLACED = "replaced"
    DISPUTED = "disputed"
    ALREADY_IN = "already_in"
    LEFT = "left"
    NOT_INSIDE = "not_inside"


VERDICT_TEXTS: Final = {
    GateVerdict.WELCOME: "welcome",
    GateVerdict.MISREAD: "not a whole ticket code; scan again",
    GateVerdict.UNKNOWN_KEY: "signed with a key this gate does not know",
    GateVerdict.OTHER_EVENT: "a ticket for another event",
    GateVerdict.REVOKED: "cancelled or returned",
    GateVerdict.FORGED: "forged",
    GateVerdict.OLD_CODE: "a picture of a ticket; ask for the live code",
    GateVerdict.DISPUTED: "its money is disputed; send the person to the box office",
    GateVerdict.REPLACED: "a newer ticket for this seat was used",
    GateVerdict.ALREADY_IN: "already used",
    GateVerdict.LEFT: "left; may come back",
    GateVerdict.NOT_INSIDE: "not inside",
}


class GateAnswer(msgspec.Struct, frozen=True):
    """The result of checking one code."""

    verdict: GateVerdict
    ticket_id: str = ""
    seat: str = ""
    first_scan: Scan | None = None  # by which it is inside, if it was already admitted
    type_name: str = ""  # of the ticket, if the bundle has it
    disputed: bool = False  # its money is disputed, and the event lets such tickets in

    @property
    def accepted(self) -> bool:
        return self.verdict in (GateVerdict.WELCOME, GateVerdict.LEFT)


def check_rotating_code(ticket: ReadTicket, event_secret: bytes, now_us: int) -> GateVerdict:
    """Check the rotating part of a signed ticket's code, if the ticket has one."""
    if not ticket.rotating:
        return GateVerdict.MISREAD if ticket.rotating_code else GateVerdict.WELCOME
    fits = is_rotating_code(ticket_secret(event_secret, ticket.short_id), ticket.rotating_code, now_us)
    return GateVerdict.WELCOME if fits else GateVerdict.OLD_CODE


class Gate:
    """One gate of one event. With a scan log, admissions survive a restart."""

    def __init__(self, bundle: Bundle, name: str, log: "ScanLog | None" = None) -> None:
        self.bundle, self.name = bundle, name
        self._keys = bundle.verifying()
        self._event = bundle.event()
        self._secret = bytes.fromhex(bundle.rotating_secret)
        self._types = {seat: name for name, seats in bundle.types.items() for seat in seats}
        self._revoked = set(check_revocations(bundle.revocations, self._keys, bundle.event_id))
        self._disputed = frozenset(bundle.disputed)
        self._log = log
        self._scans: dict[str, dict[str, Scan]] = {}  # ticket -> its scans, in and out, by their ids
        self._newest: dict[int, int] = {}  # seat -> greatest fence admitted
        for scan in log.scans() if log is not None else ():
            self._remember(scan)

    def revoke(self, revocations: Revocations) -> int:
        """Add a newer revocation list and return how many more tickets are revoked."""
        ids = check_revocations(revocations, self._keys, self.bundle.event_id)
        before = len(self._revoked)
        self._revoked |= ids
        return len(self._revoked) - before

    def verify(self, code: str, now_us: int) -> tuple[GateVerdict, ReadTicket | None]:
        """Whether the code is a valid ticket of this event, regardless of earlier scans."""
        try:
            ticket = read_code(code)
        except Misread:
            return GateVerdict.MISREAD, None
        if ticket.kid not in self._keys:
            return GateVerdict.UNKNOWN_KEY, None
        if ticket.event != self._event:
            return GateVerdict.OTHER_EVENT, None
        if ticket.id in self._revoked:
            return GateVerdict.REVOKED, ticket
        if not self._keys.signed(ticket.kid, signed_text(ticket.body), ticket.signature):
            return GateVerdict.FORGED, None
        if self.bundle.block_disputed and ticket.id in self._disputed:
            return GateVerdict.DISPUTED, ticket
        return check_rotating_code(ticket, self._secret, now_us), ticket

    def check(self, code: str, now_us: int) -> GateAnswer:
        """Verify the code and admit the ticket once. The admission is on disk before this returns."""
        verdict, ticket = self.verify(code.strip(), now_us)
        if ticket is None:
            return GateAnswer(verdict)
        seat = seat_name(self.bundle.seats, ticket.seat_index)
        entries = [scan for scan in self._scans_of(ticket.id) if scan.way is Way.IN]
        first = entries[-1 if self.bundle.reentry else 0] if entries else None
        if verdict is GateVerdict.WELCOME and entries and not self._may_return(ticket.id):
            verdict = GateVerdict.ALREADY_IN
        elif verdict is GateVerdict.WELCOME and self._newest.get(ticket.seat_index, 0) > ticket.fence:
            verdict = GateVerdict.REPLACED
        if verdict is GateVerdict.WELCOME:
            self._record(ticket, Way.IN, now_us)
        type_name, disputed = self._types.get(ticket.seat_index, ""), ticket.id in self._disputed
        return GateAnswer(verdict, ticket.id, seat, first, type_name, disputed)

    def let_out(self, code: str, now_us: int) -> GateAnswer:
        """Verify the code at an exit and record that its holder left. `ReentryNotAllowed` if nobody may come back.

        A ticket that this gate has not seen is let out as well: its holder came in at another gate.
        """
        if not self.bundle.reentry:
            raise ReentryNotAllowed(f"{self.bundle.name} does not let people come back, so its exits scan nothing")
        verdict, ticket = self.verify(code.strip(), now_us)
        if ticket is None:
            return GateAnswer(verdict)
        if verdict is GateVerdict.DISPUTED:  # whoever is inside may leave
            verdict = GateVerdict.WELCOME
        if verdict is GateVerdict.WELCOME:
            verdict = GateVerdict.NOT_INSIDE if self._may_return(ticket.id) else GateVerdict.LEFT
        if verdict is GateVerdict.LEFT:
            self._record(ticket, Way.OUT, now_us)
        seat = seat_name(self.bundle.seats, ticket.seat_index)
        return GateAnswer(verdict, ticket.id, seat, None, self._types.get(ticket.seat_index, ""))

    def _scans_of(self, ticket_id: str) -> list[Scan]:
        return order_scans(self._scans.get(ticket_id, {}).values())

    def _may_return(self, ticket_id: str) -> bool:
        scans = self._scans_of(ticket_id)
        return self.bundle.reentry and bool(scans) and scans[-1].way is Way.OUT

    def _record(self, ticket: ReadTicket, way: Way, now_us: int) -> None:
        at_us = later_than(self._scans_of(ticket.id), now_us)
        scan = Scan(
            f"{self.name}:{ticket.id}:{at_us}" + (":out" if way is Way.OUT else ""),
            self.bundle.event_id,
            ticket.id,
            self.name,
            at_us,
            ticket.seat_index,
            ticket.fence,
            way,
        )
        if self._log is not None:
            self._log.append(scan)
        self._remember(scan)

    def _remember(self, scan: Scan) -> None:
        self._scans.setdefault(scan.ticket_id, {})[scan.id] = scan
        if scan.way is Way.IN:
            self._newest[scan.seat_index] = max(scan.fence, self._newest.get(scan.seat_index, 0))

    def sync(self, others: Iterable[Scan]) -> list[DuplicateScan]:
        """Add the scans of other gates and return the tickets that they show to have been admitted while inside."""
        new = [
            scan
            for scan in others
            if scan.event_id == self.bundle.event_id and scan.id not in self._scans.get(scan.ticket_id, {})
        ]
        own = [one for ticket in {scan.ticket_id for scan in new} for one in self._scans.get(ticket, {}).values()]
        found = find_duplicates([*own, *new])
        for scan in new:
            self._remember(scan)
        return found


class ScanLog:
    """The admissions of a gate: one JSON line each, written with fsync. A line cut off by a power cut is skipped."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, scan: Scan) -> None:
        with self.path.open("ab") as file:
            if file.tell() and not self._ends_with_newline():
                file.write(b"\n")
            file.write(msgspec.json.encode(scan) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _ends_with_newline(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def scans(self) -> list[Scan]:
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")
        if len(lines) > MAX_LOG_LINES:
            raise InvalidInput(f"{self.path} has more than {MAX_LOG_LINES:,} scans; start a new log", param="log")
        scans = []
        for line in lines:
            try:
                scans.append(msgspec.json.decode(line, type=Scan))
            except msgspec.DecodeError:
                continue  # empty or cut off: the gate never answered that scan
        return scans
