"""Projects of this machine that run as servers in a sandbox."""
