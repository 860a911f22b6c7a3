"""What to do, for the terminal in which a report was asked for: a document comes in."""

from dragoman.report.document import Document


def what_to_do(document: Document) -> str:
    """Returns the advice to follow first, each with its command; empty: there is none."""
    lines = []
    for number, item in enumerate(document.to_do, 1):
        advice = item.advice
        saves = f" ({advice.saves})" if advice.saves else ""
        lines.append(f"{number}. {item.section.title}: {advice.text}{saves}")
        lines += [f"   {line}" for line in advice.command.splitlines()]
        if advice.recipe:
            lines.append("   or, in a recipe:")
            lines += [f"   {line}" for line in advice.recipe.splitlines()]
    return "\n".join(["", "What to do:", *lines]) if lines else ""
