"""Side-by-side benchmarks: peers and a floor in the same run, CPU per operation, ratios out."""
