"""What every way into the server shares: requests and responses, bodies, cookies, problems.

Knows no other package of `web`.
"""
