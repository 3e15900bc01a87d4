"""What is wrong with a tool, and what may take over from it."""
