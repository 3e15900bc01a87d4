"""HTTP in, client calls out, and reads of the registry."""
