"""What a person reads: live progress, tables, pictures."""
