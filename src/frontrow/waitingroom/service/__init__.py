"""The running waiting room: join, claim, control, background loops and recovery."""
