"""Projects of this machine that serve in a sandbox."""
