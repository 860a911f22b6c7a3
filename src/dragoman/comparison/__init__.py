"""What differed between two runs: their directories come in, rows and sentences go out.

rows      what a comparison is made of
settings  dotted keys with two values
data      hashes and sizes of what the models learned from
machines  hosts, devices, versions
speed     seconds of a step, part by part
quality   losses and BLEU, and whether a difference is more than the choice of sentences
cost      hours and money
compare   all of it in a row
"""
