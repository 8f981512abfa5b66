"""Programs that only a type checker runs: what users write has the types they expect."""
