"""The wire: values that will be read in a year. Grows, never changes meaning."""
