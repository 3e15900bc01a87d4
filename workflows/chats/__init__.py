"""Conversations: one for each chat id."""
