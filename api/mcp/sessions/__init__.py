"""The revisions with sessions over HTTP."""
