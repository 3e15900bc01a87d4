"""A second source type, as CONTRIBUTING says: its contract, its runtime, and what a service with them shows."""
