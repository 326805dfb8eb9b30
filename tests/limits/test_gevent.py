"""The limiter under gevent's monkey patching, as gunicorn's gevent workers and Celery's gevent pool run it."""

import subprocess
import sys
from pathlib import Path

SCENARIOS = Path(__file__).with_name("gevent_scenarios.py")


def test_the_limiter_works_under_gevent_in_memory_and_over_redis(redis_url: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCENARIOS), redis_url], capture_output=True, text=True, check=False, timeout=150
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("all seven work under gevent")
