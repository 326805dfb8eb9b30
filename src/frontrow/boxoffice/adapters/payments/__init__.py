"""Payment providers: Stripe, and a simulated one with scripted outcomes."""
