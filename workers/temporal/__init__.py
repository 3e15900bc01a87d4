"""The Temporal that a process works with, and the workers on it."""
