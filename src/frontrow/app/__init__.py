"""Puts the platform together: wiring, the worker process, the demo and the doctor."""
