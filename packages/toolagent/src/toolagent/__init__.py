"""What other agents import to use a Tool Agent service."""
