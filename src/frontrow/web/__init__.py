"""HTTP: the Litestar apps, the fast path in front of them, live streams and pages. Joins the systems."""
