"""The rules of tasks that make or repair tools."""
