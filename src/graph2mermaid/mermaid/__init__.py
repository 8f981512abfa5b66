"""Mermaid text: the render model, its escaping, its looks, its writer and its limits."""
