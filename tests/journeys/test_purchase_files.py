"""One purchase can be followed by file names: docs/architecture.md names the files that a real one runs."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.journeys.purchase_trace import LIBRARIES, Recorder, Trace
from tests.journeys.stack import Stack
from tests.support.eventually import eventually_sync
from tests.web.api.support import one_row

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
MAX_FILES, MAX_HOPS, MAX_TURNS = 60, 120, 8
QUIET_S = 3.0  # an idle server whose loops have nothing new for this long has turned all of them


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    with Recorder().installed() as recorder:
        yield recorder


@pytest.fixture(scope="module")
def form(recorder: Recorder) -> str:
    """Started after the recorder, so that the server's threads are profiled."""
    return "clustered"


def told(heading: str) -> set[str]:
    """The files that a section of the page names."""
    section = re.split(r"^##+ ", PAGE.read_text().partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return set(re.findall(r"`([\w/]+\.py)`", section))


class Buyer:
    """Somebody who buys one seat over the API."""

    def __init__(self, stack: Stack, event_id: str, email: str) -> None:
        self._stack, self._email = stack, email
        self._http = httpx.Client(base_url=stack.url, timeout=60)
        self._event = f"/v1/events/{event_id}"

    def wait(self) -> None:
        self._place = {"authorization": f"Bearer {self._post(f'{self._event}/room/join', {})['place']}"}
        eventually_sync(
            lambda: self._http.get(f"{self._event}/room/status", headers=self._place).json()["state"] == "active"
        )

    def buy(self, seat: str) -> None:
        """From the claim of the place, over a new connection, to the mail, and until the money is taken."""
        self._http.close()
        self._http = httpx.Client(base_url=self._stack.url, timeout=60)
        headers = {"frontrow-pass": self._post(f"{self._event}/room/claim", self._place)["pass"]}
        held = self._post(f"{self._event}/holds", headers, seats=[seat])
        headers["frontrow-booking"] = held["booking_token"]
        paying = {"method": "pm_card_visa", "email": self._email, "name": "Ada Lovelace"}
        paid = self._post(f"/v1/bookings/{held['booking']}/pay", headers, **paying)
        assert paid["state"] == "confirmed"
        self._stack.mailbox.wait_for(self._email)
        assert self._stack.paid(held["booking"]) == 5_000
        self._http.close()

    def _post(self, path: str, headers: dict[str, str], **body: object) -> dict[str, str]:
        answer = self._http.post(path, headers=headers, json=body or None)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()


@pytest.fixture(scope="module")
def trace(recorder: Recorder, stack: Stack) -> Trace:
    """A purchase on a warm server: the one before has filled caches and imported what is imported late."""
    event = stack.put_on_sale("Followed", seats=8)
    seats = one_row(8).seat_ids
    warm, ada = (Buyer(stack, event.id, f"{name}@example.org") for name in ("warm", "ada"))
    warm.wait()
    warm.buy(seats[0])
    ada.wait()
    with recorder.listening("idle"):
        eventually_sync(lambda: recorder.is_settled(QUIET_S), 60)
    with recorder.listening("purchase"):
        ada.buy(seats[1])
    return recorder.trace()


def test_j21_the_page_about_the_architecture_names_the_files_of_a_purchase(trace: Trace) -> None:
    steps, beside = told("A purchase"), told("Beside a purchase")
    missing = trace.steps - steps - beside
    assert not missing, f"not in docs/architecture.md: {sorted(missing)}"
    told_only = steps - trace.files - trace.idle_files - told("Only sometimes")
    unused = {path for path in told_only if not path.startswith(("tests/", *LIBRARIES))}
    assert not unused, f"docs/architecture.md names files that no purchase ran: {sorted(unused)}"


def test_j21_a_purchase_can_be_followed_in_sixty_files(trace: Trace) -> None:
    steps = trace.steps - told("Beside a purchase")
    hops, turns = trace.hops(steps), trace.turns(steps)
    print(f"{len(steps)} steps, {len(hops)} hops, {len(turns)} callbacks, {len(trace.files - steps)} files looked up")
    assert len(steps) <= MAX_FILES, sorted(steps)
    assert len(hops) <= MAX_HOPS, sorted(hops)
    assert len(turns) <= MAX_TURNS, sorted(turns)
