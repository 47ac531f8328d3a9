"""Candidates back into their framework: lowering, edits through the source map, one applier, proof that it is built."""
