"""What a host does by itself while it serves: it keeps its lease, watches its loop, and clears what nobody needs any more."""
