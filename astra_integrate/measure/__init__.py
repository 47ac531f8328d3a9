"""Correctness and static evidence: emulation, gate, compile, disassembly, ranking."""
