"""Operations: one function for each API that makes one."""
