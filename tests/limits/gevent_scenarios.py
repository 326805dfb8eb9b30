"""The limiter under gevent's monkey patching: `python gevent_scenarios.py redis://…` prints what was tried, or fails.

Everything runs in one process of its own, because patching cannot be undone.
"""

import gevent.monkey

gevent.monkey.patch_all()

import sys  # noqa: E402
from typing import Any  # noqa: E402

import gevent  # noqa: E402
import gevent.pool  # noqa: E402

from frontrow.limits import ConcurrencyLimiter, LeasedLimiter, Limiter, Quota, Rule, Throttled  # noqa: E402
from frontrow.limits.http.flask import RateLimits  # noqa: E402

GREENLETS = 60


def at_once(act: Any) -> list[Any]:
    """What sixty greenlets got that began together."""
    jobs = [gevent.spawn(act, number) for number in range(GREENLETS)]
    gevent.joinall(jobs, timeout=60, raise_error=True)
    assert all(job.successful() for job in jobs)
    return [job.value for job in jobs]


def check_memory() -> None:
    for compiled in ("yes", "no"):
        limiter = Limiter("20/minute sliding_log", store=f"memory://?compiled={compiled}")
        assert at_once(lambda _, limiter=limiter: limiter.check("ann").allowed).count(True) == 20


def check_redis(url: str) -> None:
    limiter = Limiter("20/minute sliding_log", store=url, deadline_s=1.0, on_store_down="closed")
    told = at_once(lambda _: limiter.check("ann"))
    assert [one.allowed for one in told].count(True) == 20
    assert {one.source for one in told} == {"store"}, limiter.stats.store_error


def check_waiting(url: str) -> None:
    for store in ("memory://", url):
        limiter = Limiter(Rule("turns", "30/second burst 1 token_bucket"), store=store, deadline_s=1.0)
        ticks: list[int] = []
        ticker = gevent.spawn(lambda ticks=ticks: [(gevent.sleep(0.01), ticks.append(1)) for _ in range(20)])
        at_once(lambda number, limiter=limiter: limiter.acquire("mail", timeout_s=30) if number < 10 else None)
        assert ticks, "others run while these wait"
        ticker.join()


def check_permits(url: str) -> None:
    for store in ("memory://", url):
        permits, together, most = ConcurrencyLimiter("3 at once", name="exports", store=store), [], []

        def work(_: int, permits: Any = permits, together: Any = together, most: Any = most) -> None:
            with permits.permit("ann", timeout_s=50):
                together.append(1)
                most.append(len(together))
                gevent.sleep(0.002)
                together.pop()

        at_once(work)
        assert max(most) == 3
        permits.close()


def check_flask(url: str) -> None:
    import flask
    from gevent.pywsgi import WSGIServer

    app = flask.Flask("shop")
    RateLimits(app, rules="20/minute sliding_log", store=url, deadline_s=1.0, prefix="flask", on_store_down="closed")
    app.add_url_rule("/", "home", lambda: "hello")
    server = WSGIServer(("127.0.0.1", 0), app, log=None)
    server.start()

    def ask(_: int) -> int:
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
        connection.request("GET", "/")
        return connection.getresponse().status

    assert sorted(at_once(ask)) == [200] * 20 + [429] * (GREENLETS - 20)
    server.stop()


def check_lost_redis() -> None:
    limiter = Limiter("5/minute", store="redis://127.0.0.1:1/0", deadline_s=0.2)
    told = at_once(lambda _: limiter.check("ann"))
    assert {one.source for one in told} == {"local"}
    assert [one.allowed for one in told].count(True) == 5


def check_leased(url: str) -> None:
    leased = LeasedLimiter(Rule("leased", Quota.parse("20/minute sliding_log")), store=url, deadline_s=1.0)
    allowed = [leased.check("ann").allowed for _ in range(40)].count(True)
    assert allowed == 20, allowed


def main(url: str) -> None:
    check_memory()
    check_redis(url)
    check_waiting(url)
    check_permits(url)
    check_flask(url)
    check_lost_redis()
    check_leased(url)
    try:
        Limiter("1/day").acquire("ann", cost=1, timeout_s=0.1)
        print("all seven work under gevent", gevent.__version__)
    except Throttled:
        sys.exit("the first call of a quota was refused")


if __name__ == "__main__":
    main(sys.argv[1])
