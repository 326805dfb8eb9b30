"""HTTP: the Litestar apps, the hot lane in front of them, live streams and pages. Joins the systems."""
