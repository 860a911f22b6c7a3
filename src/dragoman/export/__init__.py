"""A trained model leaves its run: checkpoints come in, a folder that another tool loads goes out.

One module a format. Each writes into an empty folder; `run.export_run` puts it in place when it is
whole.
"""
