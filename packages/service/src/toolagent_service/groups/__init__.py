"""Rules of groups and their sessions."""
