"""What the records of a run say about it: its directory comes in, findings go out. No torch.

record, settings, sane      every file of the run, read into one value, without what cannot be
history, attempt, lifetimes which events count when a run was resumed or went back
anatomy                     the parts of each step over all ranks: network, waiting, computing
bottleneck, judgement       what holds a step back, for the whole run and since when
answers                     the eleven questions, a module each
unasked                     what nobody asks and should know
live, watching              the same while the run goes on
findings                    what an answer is made of
"""
