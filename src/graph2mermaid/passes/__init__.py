"""What a drawing does to a graph: small steps, each from one graph to another."""
