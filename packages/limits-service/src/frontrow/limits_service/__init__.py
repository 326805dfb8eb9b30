"""`frontrow-limits serve`: the limiter for every language, over HTTP and over Envoy's rate limit protocol.

docs/limits-service.md is the manual. `command` reads the arguments, `server` runs one process, `workers` several.
"""
