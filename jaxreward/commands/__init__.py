"""What stands behind each command: its plan, its work, its summary."""
