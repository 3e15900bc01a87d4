"""What the house weighs and how far a call walks in it: `python -m bench.house [--against COMMIT]`."""
