"""What the service's own parts share: its steps, and the rules they follow. Not published."""
