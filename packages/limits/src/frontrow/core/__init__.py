"""What the limiter needs and the platform shares: time, errors, settings, background tasks, how Redis is reached.

Imports the standard library only (and redis-py when a Redis is asked for). `frontrow-limits` installs it.
"""
