"""Calling tools: `tools/list`, `tools/call`, tasks, and what a call says and asks meanwhile."""
