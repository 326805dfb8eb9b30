"""Celery tasks that are limited over all workers, for each customer alone.

Start Redis, then `celery --app examples.limiter.celery_tasks worker`, then send tasks:
`python -c "from examples.limiter.celery_tasks import send_report; [send_report.delay('ada') for _ in range(3)]"`.
"""

import os

from celery import Celery

from frontrow.limits.celery_tasks import limited_task

REDIS = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
app = Celery("reports", broker=REDIS)


def customer_of(customer: str) -> str:
    return customer


@app.task
@limited_task("2/minute", key=customer_of, store=REDIS, deadline_s=1.0)
def send_report(customer: str) -> str:
    """The third report of a minute goes back to the broker and is sent when its time comes. It blocks no worker."""
    print(f"report for {customer}", flush=True)
    return customer
