"""Version 37: brands of organisations, and when pictures are checked for use (ADR 0154)."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = "0037"
down_revision = "0036"

BRANDS = """
CREATE TABLE brands (
  organiser_id text PRIMARY KEY, colour text NOT NULL DEFAULT '', logo text NOT NULL DEFAULT '',
  logo_width bigint NOT NULL DEFAULT 0, logo_height bigint NOT NULL DEFAULT 0, changed_at_us bigint NOT NULL
);
CREATE INDEX brands_by_change ON brands (changed_at_us);
ALTER TABLE pictures ADD COLUMN check_at_us bigint NOT NULL DEFAULT 0;
UPDATE pictures SET check_at_us = created_at_us + 604800000000;
CREATE INDEX pictures_to_check ON pictures (check_at_us) WHERE check_at_us > 0;
"""


def upgrade() -> None:
    ddl.run(BRANDS)
