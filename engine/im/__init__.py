"""Chats over an IM server: one connection, a window for each chat, files that survive a crash."""
