"""Everything that can be set, from the environment (`TOOL_AGENT_…`): a class for each part of the service."""
