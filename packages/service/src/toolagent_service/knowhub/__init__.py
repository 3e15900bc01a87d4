"""KnowHub: its resources, their matching with our tools, and the changes on both sides."""
