"""Logs, metrics, traces and traffic counters."""
