"""The report of a run, finished or not: its directory comes in, three files of one content go out.

record      every file of the run that the report needs, read into one value
history     which events count when a run was resumed, and what was lost
derivation  how each fact follows from these
facts       every figure of the report, once: what report.json holds
sections    the facts in sentences, tables and charts, in the order of both documents
markdown    report.md, for a terminal
webpage     report.html, one file that works offline
write       all of it in a row
"""
