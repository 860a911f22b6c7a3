"""Real training runs in a lab with known trouble, and a judge of the reports that they get.

`worlds` says what is wrong in which run, `do_run` does it, `raw_events` computes what happened from
the recorded lines, `judge` compares the report with both. Nothing here imports the diagnosis.
"""
