"""A whole platform on a real port for browser tests, in a thread of its own, so that a test can stop and start it."""

import asyncio
import base64
import contextlib
import dataclasses
import functools
import socket
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import uvicorn
from cryptography.hazmat.primitives.asymmetric import ec
from litestar import Litestar

from frontrow.app.wiring import Platform, open_platform
from frontrow.boxoffice.adapters.channels.from_settings import MessageSettings
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.core.clock import US_PER_S, SystemClock
from frontrow.settings.platform import PlatformSettings
from frontrow.settings.room import RoomSettings
from frontrow.web.fastpath.platform_routes import fast_routes
from frontrow.web.fastpath.protocol import fast_path
from frontrow.web.guard.connection_guard import GuardRules
from frontrow.web.http.request_ids import RequestIds
from frontrow.web.server.app import front_of, run_platform
from tests.boxoffice.people.support import CHEAP
from tests.support.eventually import eventually
from tests.web.api.support import borrowed_app, put_event, settings_for

WAIT_S = 120  # a busy machine takes its time
_VAPID = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value.to_bytes(32, "big")
VAPID_KEY = base64.urlsafe_b64encode(_VAPID).decode().rstrip("=")
# A visit goes on although no page is open for a while, for tests that give the pass of one browser to another.
PATIENT_ROOM = RoomSettings(capacity=1_000, window_size=100, interval_s=0.05, idle_s=3_600, leave_s=3_600)
SECTIONS = {section.name for section in dataclasses.fields(PlatformSettings)} - {"server"}
Put = Callable[[Platform], Coroutine[Any, Any, None]]


class Site:
    """`with Site(folder, put) as site:` serves at `site.url`; `site.call(coroutine function)` runs in its loop.

    `settings` are whole sections by name (`stripe=StripeSettings(…)`), stores (`redis_url`) or fields of `[server]`.
    """

    def __init__(self, folder: Path, put: Put, **settings: Any) -> None:
        self._folder, self._put, self._settings = folder, put, settings
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.platform: Platform
        self._thread: threading.Thread | None = None
        self.ahead_s = 0  # a test may let time pass at once; it never goes back

    def start(self) -> None:
        self._ready = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="site", daemon=True)
        self._thread.start()
        assert self._ready.wait(WAIT_S), "the site did not start"
        if self._failed:
            raise self._failed

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failed = error
            self._ready.set()

    async def _serve(self) -> None:
        server = {name: given for name, given in self._settings.items() if name not in SECTIONS}
        sections = {name: given for name, given in self._settings.items() if name in SECTIONS}
        settings = settings_for(self._folder, public_url=self.url, **server)
        usual = {"messages": MessageSettings(VAPID_KEY, "mailto:ops@example.org"), "people": CHEAP}
        settings = dataclasses.replace(settings, **(usual | sections))
        clock = SystemClock()
        async with open_platform(settings, clock=lambda: clock() + self.ahead_s * US_PER_S) as platform:
            await self._put(platform)
            with borrowed_app(platform) as app:
                async with run_platform(platform):
                    await self._listen(platform, app)

    async def _listen(self, platform: Platform, app: Litestar) -> None:
        config = uvicorn.Config(
            front_of(app, platform),
            http=fast_path(fast_routes(platform), GuardRules(request_id=RequestIds(platform.server.limiter).of)),
            loop="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        self.platform, self._loop = platform, asyncio.get_running_loop()
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket.dup()]))
        await eventually(lambda: self._server.started or serving.done(), WAIT_S)
        self._ready.set()
        await serving

    def call(self, work: Callable[[Platform], Coroutine[Any, Any, Any]]) -> Any:
        """Run a coroutine on the platform, in its own loop."""
        return asyncio.run_coroutine_threadsafe(work(self.platform), self._loop).result(WAIT_S)

    def stop(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            self._server.should_exit = True
            self._thread.join(WAIT_S)
        self._thread = None

    def __enter__(self) -> "Site":
        try:
            self.start()
        except BaseException:
            self._socket.close()
            raise
        return self

    def __exit__(self, *gone: object) -> None:
        self.stop()
        with contextlib.suppress(OSError):
            self._socket.close()


@functools.cache
def hall() -> Plan:
    """An arena of 1,500 places: sections first, step-free and companion seats, a standing pit."""
    return generate("arena", 1_500)


async def put_hall(platform: Platform, plan: Plan | None = None, **changes: Any) -> None:
    """The hall's show, on sale since yesterday, unless it is there already (a restart)."""
    from frontrow.boxoffice.events.model.events import PriceTier
    from frontrow.shared.money import Money

    plan = plan or hall()
    tiers = tuple(
        PriceTier(key, Money(4500 + 2500 * number, "EUR"), key.capitalize())
        for number, key in enumerate(reversed(plan.tiers))
    )
    known = await platform.ledger.catalogue.events(None, (-1, ""), 10)
    given = {"name": "Aurora World Tour", "tiers": tiers, "description": "The northern lights, on a stage."} | changes
    wanted = given.get("id", "evt_01JCQ3W2N4X7Z8Y9A0B1C2D3E4")
    if not any(event.id == wanted for event in known):
        await put_event(platform, plan, **given)
