"""Records of tasks that make or repair tools, and of conversations of agents."""
