"""What a process keeps: its directory, secrets, database and files."""
