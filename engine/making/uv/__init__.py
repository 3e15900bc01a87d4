"""What uv does for makers, in the sandbox: environments, locks, interpreters."""
