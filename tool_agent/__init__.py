"""The seeds' name for the service: `python -m tool_agent` (seed 000 §10)."""
