"""Sessions of groups: those without a workflow, and what their providers still run."""
