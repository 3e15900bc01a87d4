"""What a host does by itself while it serves: it keeps its lease, watches its loop, and removes what is not needed any more."""
