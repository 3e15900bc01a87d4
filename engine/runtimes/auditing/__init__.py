"""What was run and refused, as lines of the audit log, and what is known to be vulnerable."""
