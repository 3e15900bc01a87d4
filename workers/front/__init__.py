"""The front door's process: what answers requests, and how it holds back what cannot be recorded."""
