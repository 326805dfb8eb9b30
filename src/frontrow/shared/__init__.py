"""What the platform's systems share: ids, money, secrets, cookies, databases, the coalescer, the log's vocabulary.

Imports none of the systems. What the limiter needs as well is in `frontrow.core`, which `frontrow-limits` installs.
"""
