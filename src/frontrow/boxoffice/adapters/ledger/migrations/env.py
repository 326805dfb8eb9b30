"""Alembic's entry: runs the migrations, all in one transaction, on the connection that `migrate` put into the
configuration: a killed upgrade leaves the old schema, and of two that start at once the second finds nothing to do."""

from alembic import context

config = getattr(context, "config", None)
if config is not None:  # None: imported by somebody else than Alembic
    context.configure(
        connection=config.attributes["connection"], transactional_ddl=True, transaction_per_migration=False
    )
    with context.begin_transaction():
        context.run_migrations()
