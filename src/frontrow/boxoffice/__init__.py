"""Events, seats, holds, payments, tickets: the shop behind the waiting room."""
