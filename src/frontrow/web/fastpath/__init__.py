"""The fast path: answers the few busy routes at the socket, before any framework code runs."""
