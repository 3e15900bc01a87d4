"""Walking along JSON Schemas, for registry and calls; checking documents against them is `toolagent.validation`."""
