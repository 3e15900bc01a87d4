"""Sessions of groups: those that lost their workflow, and launches that providers still run."""
