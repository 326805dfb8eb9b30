"""The running waiting room: joins, visits, control, background loops and recovery."""
