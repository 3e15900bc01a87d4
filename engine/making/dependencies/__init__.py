"""Which packages machine-written code may have: a gate before anything is installed."""
