"""Conversations with who wants a tool: what is kept of them, how tasks are begun for them, and how a reply by rules is had."""
