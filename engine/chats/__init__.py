"""Chats: their record, the tasks that they begin, and replies by rules."""
