"""One host: what runs tools and makes them, wired from settings."""
