"""Making tools: what a repository is, what is built from it, and whether that may be called."""
