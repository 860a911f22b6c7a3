"""The report of a run, finished or not: its directory comes in, three files of one content go out.

What is said is found in `diagnosis`; here it is shown.

write       all of it in a row
derivation  run and findings into one value
content     that value: every field of report.json, once
schema      its JSON schema
health      which verdicts are good news
curves      long series made short; `sensors` does that for what each host saw
sections    the document: which plots and tables go with which question, in their order
markdown    report.md, for a pull request and a terminal
webpage     report.html, one file that works offline; `plots` makes its figures
trace       trace.json, a timeline for other programs
"""
