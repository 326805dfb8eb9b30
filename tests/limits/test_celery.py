"""Celery tasks under a shared limit: a real app, in eager mode and with a real worker over the in-memory broker."""

from collections.abc import Iterator

import pytest
from celery import Celery, Task
from celery.contrib.testing.worker import start_worker
from celery.signals import setup_logging
from celery.worker import state

from frontrow.core.errors import ConfigError
from frontrow.limits import Limiter, Quota, Throttled
from frontrow.limits.celery_tasks import limited_task
from frontrow.testing.clock import ManualClock

PATIENCE_S = 60


@pytest.fixture
def app() -> Iterator[Celery]:
    made = Celery("shop", broker="memory://", backend="cache+memory://", set_as_current=False)
    made.conf.update(broker_transport_options={"polling_interval": 0.01})
    setup_logging.connect(leave_logging_alone)
    yield made
    setup_logging.disconnect(leave_logging_alone)
    made.close()


def leave_logging_alone(**_: object) -> None:
    """With a receiver of this signal, a worker does not configure the logging of the whole test process."""


def stop_at_once(task: Task) -> None:
    """Tell the worker to stop, and wake it by a message. Otherwise it looks up only every two seconds."""
    state.should_terminate = 0
    task.delay(0)


def test_a_worker_runs_refused_tasks_later_and_their_own_retries_stay(app: Celery, redis_url: str) -> None:
    """Ten per second and a burst of two: the third and fourth wait for 0.1 and 0.2 s at the broker, and run."""
    ran: list[tuple[str, int]] = []
    quota = Quota.parse("10/second", algorithm="token_bucket", burst=2)

    @app.task(bind=True, max_retries=0)
    @limited_task(quota, key=lambda user, **_: user, store=redis_url, deadline_s=10.0)
    def report(self, user: str, *, pages: int) -> int:
        ran.append((user, self.request.retries))
        return pages

    @app.task
    @limited_task(Quota.parse("20/second", algorithm="leaky_queue"), store=redis_url, deadline_s=10.0)
    def mail(number: int) -> int:
        return number

    @app.task
    @limited_task("1/day", give_up_after_s=1, store=redis_url, deadline_s=10.0)
    def daily() -> str:
        return "done"

    with start_worker(app, perform_ping_check=False, pool="solo"):
        reports = [report.delay("42", pages=number) for number in range(4)]
        mails = [mail.delay(number) for number in range(4)]
        first, second = daily.delay(), daily.delay()
        assert [each.get(timeout=PATIENCE_S, interval=0.01) for each in reports] == [0, 1, 2, 3]
        assert [each.get(timeout=PATIENCE_S, interval=0.01) for each in mails] == [0, 1, 2, 3]
        assert first.get(timeout=PATIENCE_S, interval=0.01) == "done"
        with pytest.raises(Throttled, match="is used up"):
            second.get(timeout=PATIENCE_S, interval=0.01)
        stop_at_once(mail)
    assert ran == [("42", 0)] * 4, "waiting took none of the task's own retries"
    for task in (report, mail, daily):
        task.run.limiter.close()


def test_in_eager_mode_a_task_waits_and_a_direct_call_is_refused(app: Celery) -> None:
    app.conf.task_always_eager = True
    clock = ManualClock()
    limiter = Limiter(Quota.parse("1/minute", algorithm="token_bucket"), clock=clock)

    @app.task
    @limited_task(limiter, cost=lambda number: 1)
    def count(number: int) -> int:
        return number

    started_us = clock()
    assert [count.delay(number).get() for number in range(3)] == [0, 1, 2]
    assert clock() - started_us == 120_000_000
    with pytest.raises(Throttled):
        count(3)
    clock.advance(60)
    assert count(4) == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"key": "user"}, "key must be a function of the task's arguments"),
        ({"give_up_after_s": -1}, "give_up_after_s must be from 0"),
        ({"name": "x"}, "a ready Limiter takes no further options"),
    ],
)
def test_a_wrong_argument_is_named(options: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        limited_task(Limiter("1/second"), **options)
