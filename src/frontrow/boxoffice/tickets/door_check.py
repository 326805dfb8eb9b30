"""The door: verifies tickets offline, records every admission, and finds double ones when gates compare notes.

Checks run from cheap to dear: form, key, event, revocation, signature, rotating code, then whether this gate has seen
the ticket or a newer one of the same seat. Nothing before the signature can accept, so what is refused early was lost.
"""

import os
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from frontrow.boxoffice.model.tickets import DuplicateScan, Scan, duplicates
from frontrow.boxoffice.tickets.door_bundle import Bundle, Revocations, check_revocations, seat_name
from frontrow.boxoffice.tickets.ticket_codes import (
    Misread,
    ReadTicket,
    read,
    rotating_code_fits,
    signed_text,
    ticket_secret,
)
from frontrow.core.errors import InvalidInput

MAX_LOG_LINES: Final = 2_000_000


class Verdict(StrEnum):
    """The door's answer."""

    WELCOME = "welcome"
    MISREAD = "misread"
    UNKNOWN_KEY = "unknown_key"
    OTHER_EVENT = "other_event"
    REVOKED = "revoked"
    FORGED = "forged"
    OLD_CODE = "old_code"
    REPLACED = "replaced"
    ALREADY_IN = "already_in"


SAYS: Final = {
    Verdict.WELCOME: "welcome",
    Verdict.MISREAD: "not a whole ticket code; scan again",
    Verdict.UNKNOWN_KEY: "signed by nobody this gate knows",
    Verdict.OTHER_EVENT: "a ticket for another event",
    Verdict.REVOKED: "cancelled or given back",
    Verdict.FORGED: "forged",
    Verdict.OLD_CODE: "a picture of a ticket; ask for the live code",
    Verdict.REPLACED: "a newer ticket of this seat was used",
    Verdict.ALREADY_IN: "already used",
}


class Checked(msgspec.Struct, frozen=True):
    """What the door says about one code."""

    verdict: Verdict
    ticket_id: str = ""
    seat: str = ""
    first_scan: Scan | None = None  # when the ticket is already in

    @property
    def accepted(self) -> bool:
        return self.verdict is Verdict.WELCOME


def live_verdict(ticket: ReadTicket, event_secret: bytes, now_us: int) -> Verdict:
    """Whether a signed ticket shows the code of this moment, if it has one that rotates."""
    if not ticket.rotating:
        return Verdict.MISREAD if ticket.rotating_code else Verdict.WELCOME
    fits = rotating_code_fits(ticket_secret(event_secret, ticket.short_id), ticket.rotating_code, now_us)
    return Verdict.WELCOME if fits else Verdict.OLD_CODE


class Gate:
    """One gate of one event. `log` is its scan log: with it a restart forgets nobody."""

    def __init__(self, bundle: Bundle, name: str, log: "ScanLog | None" = None) -> None:
        self.bundle, self.name = bundle, name
        self._keys = bundle.verifying()
        self._event = bundle.event()
        self._secret = bytes.fromhex(bundle.rotating_secret)
        self._revoked = set(check_revocations(bundle.revocations, self._keys, bundle.event_id))
        self._log = log
        self._in: dict[str, Scan] = {}
        self._newest: dict[int, int] = {}  # seat -> greatest fence let in
        for scan in log.scans() if log is not None else ():
            self._remember(scan)

    def revoke(self, listed: Revocations) -> int:
        """Take in a newer revocation list; how many tickets died by it."""
        ids = check_revocations(listed, self._keys, self.bundle.event_id)
        before = len(self._revoked)
        self._revoked |= ids
        return len(self._revoked) - before

    def verify(self, code: str, now_us: int) -> tuple[Verdict, ReadTicket | None]:
        """Whether the code is a real, live ticket of this event: no memory of earlier scans is asked."""
        try:
            ticket = read(code)
        except Misread:
            return Verdict.MISREAD, None
        if ticket.kid not in self._keys:
            return Verdict.UNKNOWN_KEY, None
        if ticket.event != self._event:
            return Verdict.OTHER_EVENT, None
        if ticket.id in self._revoked:
            return Verdict.REVOKED, ticket
        if not self._keys.signed(ticket.kid, signed_text(ticket.body), ticket.signature):
            return Verdict.FORGED, None
        return live_verdict(ticket, self._secret, now_us), ticket

    def check(self, code: str, now_us: int) -> Checked:
        """Verify, and let the ticket in once; an admission is on the disk before the answer is given."""
        verdict, ticket = self.verify(code.strip(), now_us)
        if ticket is None:
            return Checked(verdict)
        seat = seat_name(self.bundle.seats, ticket.seat_index)
        first = self._in.get(ticket.id)
        if verdict is Verdict.WELCOME and first is not None:
            verdict = Verdict.ALREADY_IN
        elif verdict is Verdict.WELCOME and self._newest.get(ticket.seat_index, 0) > ticket.fence:
            verdict = Verdict.REPLACED
        if verdict is Verdict.WELCOME:
            self._admit(ticket, now_us)
        return Checked(verdict, ticket.id, seat, first)

    def _admit(self, ticket: ReadTicket, now_us: int) -> None:
        scan = Scan(
            f"{self.name}:{ticket.id}:{now_us}", self.bundle.event_id, ticket.id, self.name, now_us,
            ticket.seat_index, ticket.fence,
        )  # fmt: skip
        if self._log is not None:
            self._log.append(scan)
        self._remember(scan)

    def _remember(self, scan: Scan) -> None:
        known = self._in.get(scan.ticket_id)
        if known is None or scan.at_us < known.at_us:
            self._in[scan.ticket_id] = scan
        self._newest[scan.seat_index] = max(scan.fence, self._newest.get(scan.seat_index, 0))

    def sync(self, others: Iterable[Scan]) -> list[DuplicateScan]:
        """Learn what other gates let in; the tickets that are now seen to have come in more than once."""
        foreign = [scan for scan in others if scan.event_id == self.bundle.event_id]
        mine = [self._in[scan.ticket_id] for scan in foreign if scan.ticket_id in self._in]
        found = duplicates([*mine, *foreign])
        for scan in foreign:
            self._remember(scan)
        return found


class ScanLog:
    """A gate's admissions, one JSON line each, forced to the disk; a line cut off by a power cut is left out."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, scan: Scan) -> None:
        with self.path.open("ab") as file:
            if file.tell() and not self._whole():
                file.write(b"\n")
            file.write(msgspec.json.encode(scan) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _whole(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def scans(self) -> list[Scan]:
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")
        if len(lines) > MAX_LOG_LINES:
            raise InvalidInput(f"{self.path} has more than {MAX_LOG_LINES:,} scans; begin a new log", param="log")
        scans = []
        for line in lines:
            try:
                scans.append(msgspec.json.decode(line, type=Scan))
            except msgspec.DecodeError:
                continue  # empty, or cut off: that admission's answer was never given
        return scans
