"""Plans a run before it is paid for: seconds, hours, money, memory and the way to synchronize."""
