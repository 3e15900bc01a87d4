"""Where a task builds: its files, environments, commands and containers on one host."""
