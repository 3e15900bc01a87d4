"""The rules of calls, batches and actions, and how their results are made."""
