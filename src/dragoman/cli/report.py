from dragoman.cli.arguments import Run


def report(run: Run) -> None:
    """Write report.html, report.md and report.json of a run, finished or not.

    Example: dragoman report runs/demo
    """
    from dragoman.console import say
    from dragoman.report.write import write_report
    from dragoman.rundir import RunDir

    for path in write_report(RunDir(run)):
        say(str(path))
