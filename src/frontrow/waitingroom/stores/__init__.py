"""The stores of a room's few integers: memory, Redis, and several of them as one."""
