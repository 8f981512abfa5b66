"""The report: what it is made of, and its Markdown."""
