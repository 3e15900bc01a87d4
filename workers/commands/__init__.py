"""What `python -m workers` does, a command each."""
