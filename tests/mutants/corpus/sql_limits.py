"""The limiter's counts in PostgreSQL and SQLite."""

from tests.mutants.mutant import Mutant

TESTS = "tests/limits/test_sql_store.py"
POSTGRES = "limits/stores/sql/postgresql.sql"
SQLITE = "limits/stores/sqlite.py"

MUTANTS = (
    Mutant(
        "keys in use are cleaned away",
        "a key in use never expires",
        SQLITE,
        "WHERE expires_us < ? ORDER BY expires_us LIMIT ?",
        "WHERE expires_us > ? ORDER BY expires_us LIMIT ?",
        (f"{TESTS}::test_l9_each_new_key_takes_at_most_two_idle_ones_away",),
    ),
    Mutant(
        "a counter in PostgreSQL that forgets the window before",
        "stores decide alike",
        POSTGRES,
        "prev := CASE WHEN start - then_ = period THEN cur ELSE 0 END; cur := 0;",
        "prev := 0; cur := 0;",
        ("tests/limits/test_differential.py::test_specification_kernel_script_and_sql_agree_on_random_histories",),
    ),
    Mutant(
        "a refund that is sent twice",
        "units are given back once",
        "limits/stores/blocking_calls.py",
        "RETRYABLE = frozenset((CHECK, PEEK))",
        "RETRYABLE = frozenset(range(8))",
        (f"{TESTS}::test_a_refund_whose_connection_breaks_is_not_repeated",),
    ),
)
