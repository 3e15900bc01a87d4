"""KnowHub: its tools and ours, each naming the other."""
