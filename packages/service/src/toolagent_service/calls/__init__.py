"""The rules of calls: what an action says, where a tool lives, what a sandbox grants."""
