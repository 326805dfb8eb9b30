"""The hot table: addresses with one parameter, and the list of events that is made once for all who ask (B1)."""

import asyncio

import httpx
import pytest

from frontrow.boxoffice.events.event_listing import ListingPage
from frontrow.web.endpoints.event_list import PLAIN, EventLists
from frontrow.web.fastpath.protocol import has_fine_host
from frontrow.web.fastpath.route_table import HotTable, RouteTable
from frontrow.web.http.messages import EndpointRequest, EndpointResponse
from tests.web.api.support import EVENT_ID, a_platform, a_server, put_event

ASK = EndpointRequest([], b"", "127.0.0.1")


def a_table() -> RouteTable:
    table = RouteTable()
    table.put("GET", "/v1/bookings/", "", lambda booking, ask: EndpointResponse(200, b"", f"look {booking}".encode()))
    table.put(
        "POST", "/v1/bookings/", "/pay", lambda booking, ask: EndpointResponse(200, b"", f"pay {booking}".encode())
    )
    return table


def test_an_address_with_a_parameter_finds_its_handler():
    table = a_table()
    found = table.shaped(b"POST", b"/v1/bookings/bkg_01-A/pay")
    assert found is not None
    assert found(ASK).body == b"pay bkg_01-A"
    look = table.shaped(b"GET", b"/v1/bookings/bkg_1")
    assert look is not None
    assert look(ASK).body == b"look bkg_1"
    again = table.shaped(b"GET", b"/v1/bookings/bkg_2")
    assert again is not None
    assert again.shape is look.shape, "known by its shape, however many bookings there are"


@pytest.mark.parametrize(
    "url",
    [
        b"",
        b"/",
        b"/v1",
        b"/v1/",
        b"/v1/bookings",
        b"/v1/bookings/",
        b"/v1/bookings//pay",
        b"/v1/bookings/a/pay/",
        b"/v1/bookings/a%2fb/pay",
        b"/v1/bookings/a b/pay",
        b"/v1/bookings/a/b/pay",
        b"/v1/bookings/a/Pay",
        b"//v1/bookings/a/pay",
        b"/v1//bookings/a/pay",
        b"/V1/bookings/a/pay",
        b"/v1/bookings/a/pay?x=1",
        b"/v1/bookings/" + b"a" * 65 + b"/pay",
        b"/v1/bookings/\xff/pay",
        b"http://evil/v1/bookings/a/pay",
        b"/v1/bookings/../pay",
        b"*",
    ],
)
def test_whatever_is_not_plain_is_left_to_the_framework(url):
    assert a_table().shaped(b"POST", url) is None


@pytest.mark.parametrize("host", [b"a b", b"a/b", b"a:99999", b"user@a", b"a\xff"])
def test_a_host_that_the_framework_would_not_take_is_left_to_it(host):
    assert has_fine_host([(b"Host", b"tickets.example.org:443")])
    assert not has_fine_host([(b"hOsT", host)])
    assert not has_fine_host([(b"Host", b"tickets.example.org:443"), (b"Host", host)])


async def test_an_event_that_is_closed_is_left_to_the_framework(tmp_path):
    async with a_platform(tmp_path) as platform:
        table = HotTable(platform.endpoints)
        table.add(EVENT_ID)
        assert any(EVENT_ID.encode() in url for _, url in table.routes)
        table.drop(EVENT_ID)
        assert not any(EVENT_ID.encode() in url for _, url in table.routes)


class SlowBrowse:
    """Finds nothing, once it is let."""

    def __init__(self) -> None:
        self.let, self.asked = asyncio.Event(), 0

    async def search(self, words, **how):
        self.asked += 1
        await self.let.wait()
        return ListingPage((), None)


async def test_b1_a_page_is_made_once_for_all_who_ask_meanwhile():
    browse, version = SlowBrowse(), [0]
    lists = EventLists(browse, lambda: version[0])
    asking = [asyncio.create_task(lists.answer(PLAIN, ASK)) for _ in range(50)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    version[0] = 1
    later = asyncio.create_task(lists.answer(PLAIN, ASK))
    await asyncio.sleep(0)
    browse.let.set()
    answers = await asyncio.gather(*asking, later)
    assert {answer.body for answer in answers} == {b'{"events":[],"next":null}'}
    assert browse.asked == 2, "once for fifty, and once more for who asked after a change"
    known = EndpointRequest(
        [(b"If-None-Match", b'"x", ' + answers[0].head.partition(b"etag: ")[2].strip())], b"", "127.0.0.1"
    )
    assert (await lists.answer(PLAIN, known)).status == 304


@pytest.mark.parametrize("hot_lane", [True, False], ids=["hot", "framework"])
async def test_b1_what_this_server_wrote_shows_in_the_list_at_once(tmp_path, hot_lane):
    async with a_server(tmp_path, hot_lane=hot_lane) as (platform, url), httpx.AsyncClient(base_url=url) as client:
        tag = (await client.get("/v1/events")).headers["etag"]
        for number in range(3):
            await put_event(platform, id=f"evt_new{number}", name=f"Borealis {number}")
            now = await client.get("/v1/events", headers={"If-None-Match": tag})
            assert (now.status_code, len(now.json()["events"])) == (200, number + 2)
