"""Bounds on what a server takes on: requests at once (overload), and connections and streams of one address.

Knows no other package of `web` but `http`.
"""
