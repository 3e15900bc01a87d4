"""What agents of every role have in common, and one file for each role."""
