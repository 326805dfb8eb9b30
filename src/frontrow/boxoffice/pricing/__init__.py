"""Pricing: tiers, ticket types, add-ons, codes, fees, taxes, and the lines of a price."""
