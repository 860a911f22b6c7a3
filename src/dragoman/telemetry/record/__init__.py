"""What training writes: events, status.json and the readings of sensors."""
