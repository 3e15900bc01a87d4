"""An agent of somebody else's that uses Tool Agent's tools."""
