"""What each `[sync] mode` costs in quality, and what it saves in time.

`variants` says as data what is compared. `quality` trains each variant on plain local workers and
translates held-out text; `timing` trains it for some windows on lab nodes with slow links.
`results` keeps what is finished, so that a benchmark that was ended goes on where it was. `figures`
turns events into figures and `tables` shows them. Both are pure.
"""
