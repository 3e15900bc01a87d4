"""What KnowHub and we say of the same tools: how its resources are read, matched with ours, and what is to be changed."""
