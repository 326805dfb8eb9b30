"""A reply that comes after its deadline: the caller has heard of the deadline, and hears nothing more."""

import asyncio

from frontrow.settings.overload import OverloadSettings
from frontrow.web.fastpath.pending_replies import PendingReply, Reply
from frontrow.web.guard.overload import OverloadGate
from frontrow.web.guard.overload_watch import Watch
from frontrow.web.guard.route_metrics import Traffic
from frontrow.web.http.messages import EndpointResponse

DONE = EndpointResponse(200, b"", b"done")


class Written:
    """A connection that remembers what was written."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []

    def logged_id(self) -> str:
        return ""

    def write_late(self, reply: Reply, keep_alive: bool) -> None:
        self.replies.append(reply)


def a_watch() -> Watch:
    return Watch(OverloadGate(OverloadSettings()), Traffic(), lambda peer: False)


def test_a_reply_that_is_made_in_time_is_written_once() -> None:
    connection, watch = Written(), a_watch()
    reply = PendingReply(connection, True, None, watch, watch.waiting)
    reply.made(DONE)
    reply.expire()
    assert (connection.replies, watch.waiting) == ([DONE], {})


def test_a_reply_that_is_made_after_its_deadline_is_not_written() -> None:
    connection, watch = Written(), a_watch()
    reply = PendingReply(connection, True, None, watch, watch.waiting)
    reply.expire()
    reply.made(DONE)
    assert connection.replies == [watch.deadline_response]


async def test_a_future_that_ends_after_its_deadline_is_not_written() -> None:
    connection, watch = Written(), a_watch()
    future: asyncio.Future[EndpointResponse] = asyncio.get_running_loop().create_future()
    reply = PendingReply(connection, True, future, watch, watch.waiting)
    future.add_done_callback(reply.done)
    reply.expire()
    future.set_result(DONE)
    await asyncio.sleep(0)
    assert connection.replies == [watch.deadline_response]


def test_nothing_is_written_to_who_has_left() -> None:
    connection, watch = Written(), a_watch()
    reply = PendingReply(connection, True, None, watch, watch.waiting)
    reply.disconnected = True
    reply.made(DONE)
    assert connection.replies == []
