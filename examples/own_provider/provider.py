"""A payment provider of your own: fans pay on the page of a made-up bank (`bank.py`), which keeps its book in SQLite.

Start the bank with `python examples/own_provider/bank.py`, then the shop in the same folder with
`PYTHONPATH=. frontrow serve --demo -c examples/own_provider/frontrow.toml`.
Every write is one statement that also checks what must hold, so a repeated call does nothing twice.
"""

import os
import sqlite3
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from frontrow.boxoffice.payments.model.payment_methods import HOSTED
from frontrow.boxoffice.payments.model.provider_intents import (
    Intent,
    IntentState,
    NewIntent,
    Notice,
    ProviderRefund,
    ProviderRefused,
)

SCHEMA = """
CREATE TABLE IF NOT EXISTS payments (ref TEXT PRIMARY KEY, state TEXT, amount INT, currency TEXT, captured INT,
    error TEXT, booking TEXT, attempt INT, created_at_us INT, capture_key TEXT);
CREATE TABLE IF NOT EXISTS refunds (key TEXT PRIMARY KEY, payment TEXT, amount INT, refund_id TEXT);
"""
LEFT = (
    "SELECT captured - coalesce((SELECT sum(amount) FROM refunds WHERE payment = ref), 0) FROM payments WHERE ref = ?"
)


class BankProvider:
    """See `frontrow.boxoffice.payments.ports.PaymentProvider`, which says what each method promises."""

    name = "our-bank"
    methods = (HOSTED,)  # what people can pay with: the bank's page asks them

    def __init__(self, book: str, bank_url: str, clock: Any, public_url: str) -> None:
        self._book = sqlite3.connect(book, isolation_level=None)  # every statement is a transaction
        self._book.executescript(SCHEMA)
        self._bank_url, self._clock, self._public_url = bank_url, clock, public_url

    async def create(self, new: NewIntent) -> Intent:
        ref, about = f"pay_{new.key}", (new.amount_minor, new.currency, new.booking_id, new.attempt)
        insert = "INSERT OR IGNORE INTO payments VALUES (?, 'created', ?, ?, 0, '', ?, ?, ?, '')"
        self._book.execute(insert, (ref, *about, self._clock()))
        made = await self.read(ref)
        if (made.amount_minor, made.currency, made.booking_id, made.attempt) != about:
            raise ProviderRefused(f"{new.key} was used for another payment", "idempotency_error")
        return await self.authorise(ref, new.method, new.key) if new.method else made

    async def authorise(self, ref: str, method: str, key: str, return_url: str = "") -> Intent:
        """`hosted`: the bank's page asks the fan. `account`: the bank knows this fan. Anything else is declined."""
        state, error = {"hosted": ("action", ""), "account": ("authorised", "")}.get(
            method, ("created", "unknown_method")
        )
        allowed = "UPDATE payments SET state = ?, error = ? WHERE ref = ? AND state IN ('created', 'action')"
        if self._book.execute(allowed, (state, error, ref)).rowcount == 0 and (await self.read(ref)).state == "void":
            raise ProviderRefused(f"{ref} is void", "unexpected_state")
        return await self.read(ref)

    async def capture(self, ref: str, key: str) -> Intent:
        take = "UPDATE payments SET state = 'captured', captured = amount, capture_key = ? WHERE ref = ? AND"
        self._book.execute(f"{take} state = 'authorised'", (key, ref))
        if not self._book.execute("SELECT 1 FROM payments WHERE ref = ? AND capture_key = ?", (ref, key)).fetchone():
            raise ProviderRefused(f"{ref} has no reserved money", "unexpected_state")
        return await self.read(ref)

    async def void(self, ref: str, key: str) -> Intent:
        self._book.execute("UPDATE payments SET state = 'void' WHERE ref = ? AND state <> 'captured'", (ref,))
        if (await self.read(ref)).state != "void":
            raise ProviderRefused(f"{ref} is captured", "unexpected_state")
        return await self.read(ref)

    async def refund(self, ref: str, amount_minor: int, refund_id: str, key: str) -> ProviderRefund:
        give = f"INSERT OR IGNORE INTO refunds SELECT ?, ?, ?, ? WHERE ? <= ({LEFT})"
        self._book.execute(give, (key, ref, amount_minor, refund_id, amount_minor, ref))
        if not self._book.execute("SELECT 1 FROM refunds WHERE key = ?", (key,)).fetchone():
            raise ProviderRefused(f"{amount_minor} is more than is left of {ref}", "too_much")
        return ProviderRefund(key, amount_minor, refund_id)

    async def read(self, ref: str) -> Intent:
        found = self._book.execute("SELECT * FROM payments WHERE ref = ?", (ref,)).fetchone()
        if found is None:
            raise ProviderRefused(f"there is no {ref}", "missing")
        _, state, amount, currency, captured, error, booking, attempt, created_at_us, _ = found
        back = quote(f"{self._public_url}/checkout/{booking}", safe="")
        action = f"{self._bank_url}/?ref={quote(ref, safe='')}&back={back}" if state == "action" else ""
        refunds = self._book.execute(
            "SELECT key, amount, refund_id FROM refunds WHERE payment = ? ORDER BY rowid", (ref,)
        )
        return Intent(
            ref, IntentState(state), amount, currency, captured, booking, attempt, client_secret=ref, action_url=action,
            error=error, failure=f"{ref}:{error}" if error else "", created_at_us=created_at_us,
            refunds=tuple(ProviderRefund(*row) for row in refunds),
        )  # fmt: skip

    async def page(self, since_us: int, after: str = "", limit: int = 100) -> list[Intent]:
        newest = "SELECT ref FROM payments WHERE created_at_us >= ? AND rowid < coalesce((SELECT rowid FROM payments"
        order = f"{newest} WHERE ref = ?), 9e18) ORDER BY rowid DESC LIMIT ?"
        return [await self.read(ref) for (ref,) in self._book.execute(order, (since_us, after, limit)).fetchall()]

    def notice(self, body: bytes, headers: Mapping[str, str], now_us: int) -> Notice | None:
        return None  # this bank sends no webhooks: the worker reads the payments

    async def aclose(self) -> None:
        self._book.close()


def open_provider(clock: Any, public_url: str) -> BankProvider:
    """What `payments.url = "python:examples.own_provider.provider:open_provider"` names."""
    bank_url = os.environ.get("OUR_BANK_URL", "http://127.0.0.1:9000")
    return BankProvider(os.environ.get("OUR_BANK_BOOK", "bank.sqlite"), bank_url, clock, public_url)
