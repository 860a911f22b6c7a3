"""What differed between two runs: their directories come in, rows and sentences go out.

compare   all aspects of two runs
aspects   what a comparison consists of
inputs    settings, data and machines
outcomes  speed, quality and cost
"""
