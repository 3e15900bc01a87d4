"""What a version has to show, one module a check; their order is in the package above."""
