"""Alembic's entry: runs the migrations on the connection that `migrate` put into the configuration."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, transactional_ddl=True, transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
