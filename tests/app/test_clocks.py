"""A server whose clock is an hour ahead: what is shared goes by the stores' time, and it does not take visitors."""

import time

import pytest

from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_client, a_platform

HOUR_NS = 3_600_000_000_000


async def test_a_server_an_hour_ahead_spoils_nothing_and_is_not_ready(
    tmp_path, redis_url, postgres_ledger_url, monkeypatch: pytest.MonkeyPatch
):
    """All passes were expired there, and nobody was admitted any more."""
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + HOUR_NS)
    monkeypatch.setattr(time, "time", lambda: (real() + HOUR_NS) / 1e9)
    async with (
        a_platform(tmp_path, redis_url=redis_url, postgres_url=postgres_ledger_url) as platform,
        a_client(platform) as client,
    ):
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, best={"count": 1})
        assert (await buyer.pay(held["booking"]))["state"] == "confirmed"
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["code"]) == (503, "not_ready")
        assert "clock is off by 3600 s" in ready.json()["detail"]
        line = next(
            line for line in (await client.get("/metrics")).text.splitlines() if line.startswith("frontrow_clock_error")
        )
        assert 3_599 < float(line.split()[1]) < 3_601
        monkeypatch.undo()
        assert (await client.get("/readyz")).status_code == 200
