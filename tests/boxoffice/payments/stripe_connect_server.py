"""Stripe Connect in front of localstripe, which has no accounts: from Stripe's public documentation.

Each object belongs to the account of the `Stripe-Account` header it was made with, and exists for no other. Accounts,
account links and payouts are answered here. `closed` accounts answer 403, as when an owner takes the access away.
"""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl, urlencode

import httpx
from aiohttp import web


class StripeConnect:
    """The accounts, and whose each payment is."""

    def __init__(self, behind: str) -> None:
        self.url, self.behind = "", behind
        self.accounts: dict[str, dict[str, Any]] = {}
        self.owner: dict[str, str] = {}
        self.fees: dict[str, int] = {}
        self.keys: dict[str, str] = {}
        self.closed: set[str] = set()
        self._client = httpx.AsyncClient(base_url=behind, timeout=20)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        account = request.headers.get("Stripe-Account", "")
        form = dict(parse_qsl((await request.read()).decode()))
        name = request.path.removeprefix("/v1/accounts/")
        if account in self.closed or name in self.closed:
            why = "The provided key does not have access to account (or that account does not exist)."
            return _error(403, "account_invalid", why)
        if request.path == "/v1/accounts" and request.method == "POST":
            key = request.headers.get("Idempotency-Key", "")
            name = self.keys.setdefault(key, f"acct_{len(self.accounts) + 1}")
            due = {"currently_due": ["external_account"], "disabled_reason": "requirements.past_due"}
            made = {"id": name, "object": "account", "charges_enabled": False, "requirements": due}
            return web.json_response(self.accounts.setdefault(name, made))
        if request.path == "/v1/account_links":
            return web.json_response({"object": "account_link", "url": f"https://connect.example/{form['account']}"})
        if request.path.startswith("/v1/accounts/"):
            return web.json_response(self.accounts[name])
        if request.path == "/v1/payouts":
            paid = {"id": "po_1", "object": "payout", "amount": 4321, "currency": "eur", "status": "paid"}
            return web.json_response({"object": "list", "data": [paid | {"arrival_date": 1_800_000_000}]})
        return await self._pass_on(request, account, form)

    async def _pass_on(self, request: web.Request, account: str, form: dict[str, str]) -> web.StreamResponse:
        named = next((part for part in request.path.split("/") if part in self.owner), form.get("payment_intent", ""))
        named = named or request.query.get("payment_intent", "")
        if self.owner.get(named, account) != account:
            return _error(404, "resource_missing", f"No such payment_intent: {named}")
        fee = int(form.pop("application_fee_amount", "0"))
        headers = {
            name: value for name, value in request.headers.items() if name.lower() not in ("host", "content-length")
        }
        answer = await self._client.request(
            request.method, request.path_qs, content=urlencode(form).encode() if form else None, headers=headers
        )
        found = answer.json()
        if request.path == "/v1/payment_intents" and request.method == "GET":
            found["data"] = [one for one in found["data"] if self.owner.get(one["id"], "") == account]
        elif request.path == "/v1/payment_intents" and answer.is_success:
            self.owner[found["id"]], self.fees[found["id"]] = account, fee
        return web.Response(status=answer.status_code, body=json.dumps(found), content_type="application/json")


def _error(status: int, code: str, message: str) -> web.Response:
    error = {"type": "invalid_request_error", "code": code, "message": message}
    return web.json_response({"error": error}, status=status)


@contextlib.asynccontextmanager
async def stripe_connect(behind: str) -> AsyncIterator[StripeConnect]:
    """Connect on a free port, in front of the localstripe at `behind`."""
    connect, app = StripeConnect(behind), web.Application()
    app.router.add_route("*", "/{rest:.*}", connect.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    connect.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield connect
    finally:
        await connect._client.aclose()
        await runner.cleanup()
