"""Payment providers behind one port: `stripe` (the real one) and `simulated` (scripted, deterministic)."""
