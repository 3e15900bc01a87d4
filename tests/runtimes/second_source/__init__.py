"""A second source type, added as CONTRIBUTING says: its contract, its runtime, and what a service shows of it."""
