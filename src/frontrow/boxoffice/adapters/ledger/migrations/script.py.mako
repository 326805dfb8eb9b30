"""${message}."""

from frontrow.boxoffice.adapters.ledger.migrations import ddl

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    ddl.run("""
    """)
