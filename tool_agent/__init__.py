"""Another name for the service: `python -m tool_agent`."""
