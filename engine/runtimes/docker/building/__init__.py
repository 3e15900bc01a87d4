"""Images, and containers to build tools in."""
