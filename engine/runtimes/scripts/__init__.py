"""How scripts run: found under their root, given an environment with what they depend on, executed in the sandbox."""
