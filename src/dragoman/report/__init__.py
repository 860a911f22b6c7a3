"""The report of a run, finished or not: its directory comes in, three files of one content go out.

Findings are made in `diagnosis`; here they are shown.

write           the three files
build           facts and diagnosis into one value
content         that value: every field of report.json, and its JSON schema
state           the state of the run, as a value and in words
curves          many steps in few points; `host_curves` does that for the sensors of each host
document        what a document consists of, before it is Markdown or HTML
sections        the document: questions with their plots, and appendices
markdown        report.md, for a pull request and a terminal
webpage         report.html, one file that works offline; `plotly_figures` makes its plots
trace           trace.json, a timeline for other programs
"""
