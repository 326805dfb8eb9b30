"""The running waiting room: joining, claiming, control, its loops and its recovery."""
