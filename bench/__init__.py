"""Side-by-side benchmarks: one command each, ratios out."""
