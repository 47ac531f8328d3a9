"""The compilers, headers and disassemblers that astra drives, and the machine it runs on."""
