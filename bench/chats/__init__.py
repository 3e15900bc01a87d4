"""Many chats at once, and a long one: what was said is answered once, in order."""
