"""What we are measured beside: each a process of its own, as small as it can be made."""
