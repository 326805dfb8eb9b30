"""Takes the reports of a shop's health, which the leader uses to hold its latency (`model.inflow`)."""

from collections import Counter

import msgspec

from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput, Unauthorised
from frontrow.waitingroom.credentials.report_keys import check_signature, report_key
from frontrow.waitingroom.model.inflow import MAX_P95_MS, ShopReport
from frontrow.waitingroom.ports import RoomStore
from frontrow.waitingroom.service.room_cache import RoomCache

MAX_BODY_BYTES = 1_024
MAX_REQUESTS = 10**9
MAX_SKEW_MS = 120_000


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    """A report as it is sent. `number` is the reporter's clock in milliseconds since 1970 and grows."""

    reporter: str
    number: int
    p95_ms: int
    requests: int
    errors: int = 0


_decode = msgspec.json.Decoder(_Body).decode


class ShopReports:
    """Checks signature, age and figures of a report, and stores it."""

    def __init__(
        self, *, store: RoomStore, cache: RoomCache, master_secret: bytes, clock: Clock, counts: Counter[str]
    ) -> None:
        self._store = store
        self._cache = cache
        self._secret = master_secret
        self._clock = clock
        self._counts = counts

    def read(self, event: str, body: bytes, signature: str) -> ShopReport:
        """The report in this body, which must be signed for this event (a room, or the queue of several)."""
        if not signature:
            raise Unauthorised("sign the report: Frontrow-Report: v1=<HMAC-SHA256 of the body with the report key>")
        if len(body) > MAX_BODY_BYTES:
            raise InvalidInput(f"a report has at most {MAX_BODY_BYTES} bytes", param="body")
        try:
            sent = _decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidInput(f"the report is not what is expected here: {error}", param="body") from None
        check_signature(report_key(self._secret, event, sent.reporter), body, signature)
        bounds = (
            ("p95_ms", sent.p95_ms, MAX_P95_MS),
            ("requests", sent.requests, MAX_REQUESTS),
            ("errors", sent.errors, sent.requests),
        )
        for name, value, most in bounds:
            if not 0 <= value <= most:
                raise InvalidInput(f"{name} must be from 0 to {most}, not {value}", param=name)
        if abs(sent.number - self._clock() // 1000) > MAX_SKEW_MS:
            raise InvalidInput(
                "number must be the time in milliseconds since 1970, within two minutes of the room's clock",
                param="number",
            )
        return ShopReport(sent.reporter, sent.number, sent.p95_ms, sent.requests, sent.errors)

    async def take(self, room: str, report: ShopReport) -> bool:
        """Store the report for a room. False if it is an old one, sent again or overtaken."""
        self._cache.find(room)
        taken = await self._store.put_report(room, report)
        self._counts["shop_reports" if taken else "shop_reports_ignored"] += 1
        return taken
