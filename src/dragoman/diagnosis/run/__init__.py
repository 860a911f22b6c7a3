"""The facts of a run, without opinions, each derived once.

record, settings, validate   all files of the run in one value, without what cannot be
attempts, timeline           what each attempt did, and which of its steps and evaluations count
steps                        what the steps spent their time on, over all ranks
faults, silences             what interrupted the run, and when it stood still
hosts, host_traffic          what the sensors of each host have read, and what it sent and received
facts                        `RunFacts`: all of it, for answers, reports and comparisons
"""
