"""Version 18: the waitlists of cancelled events end.

Cancellations of events that are still to come run once more, so that the people in line are told. Nobody wants to hear
of an event whose day is over: those entries end quietly.
"""

import time

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0015"

AGAIN = """
UPDATE cancellations SET job_state = 'running', next_at_us = 0 WHERE event_id IN (
  SELECT w.event_id FROM waitlist AS w JOIN events AS e ON e.id = w.event_id
  WHERE w.entry_state IN ('waiting', 'offered') AND e.event_state = 'cancelled' AND e.starts_at_us > :now_us)
"""
OVER = """
UPDATE waitlist SET entry_state = 'ended', changed_at_us = :now_us WHERE entry_state = 'waiting' AND event_id IN (
  SELECT id FROM events WHERE event_state = 'cancelled' AND starts_at_us <= :now_us)
"""


def upgrade() -> None:
    now_us = time.time_ns() // 1_000
    for statement in (AGAIN, OVER):
        op.get_bind().execute(sa.text(statement), {"now_us": now_us})
