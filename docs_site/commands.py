"""The command line comes in, the page with every command, argument and option goes out."""

import re
from collections.abc import Iterator
from typing import Any

import typer
import typer.main

from docs_site.markdown import code, prose, table

INTRODUCTION = """\
# Every command and option

Written from the command line itself when the site is built; `dragoman COMMAND --help` shows the
same. For what the commands are for, see [commands](../commands.md).
"""


def commands_page(app: typer.Typer) -> str:
    """Returns a section for each command that is not hidden, groups with their members below."""
    found = [*_commands(typer.main.get_command(app), "dragoman")]
    rows = [
        (f"[`{name}`](#{name.replace(' ', '-')})", prose(_first_paragraph(command.help or "")))
        for name, command in found
    ]
    contents = table(("command", "what it does"), rows)
    return "\n".join([INTRODUCTION, contents, *(_section(*one) for one in found)])


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    for word, command in group.commands.items():
        if command.hidden:
            continue
        yield f"{name} {word}", command
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} {word}")


def _section(name: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    words = [name, *map(_argument, arguments), *(["[OPTIONS]"] if options else [])]
    if hasattr(command, "commands"):
        words.append("COMMAND")
    parts = [f"## {name}", "```text\n" + " ".join(words) + "\n```", _prose(command.help or "")]
    if arguments:
        rows = [(code(_argument(one)), prose(one.help or "")) for one in arguments]
        parts.append(table(("argument", "meaning"), rows))
    if options:
        rows = [(code(_option(one)), prose(_meaning(one))) for one in options]
        parts.append(table(("option", "meaning"), rows))
    return "\n\n".join(parts) + "\n"


def _argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    name = f"{name}..." if argument.nargs == -1 else name
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _option(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    return names if option.is_flag else f"{names} {option.metavar or option.name.upper()}"


def _meaning(option: Any) -> str:
    notes = [option.help or ""]
    if option.multiple and "epeat" not in notes[0]:
        notes.append("Can be repeated.")
    low, high = getattr(option, "min", None), getattr(option, "max", None)
    if low is not None and high is not None:
        notes.append(f"From {low:,} to {high:,}.")
    elif low is not None:
        notes.append(f"At least {low:,}.")
    if option.default not in (None, False, "", (), []) and not callable(option.default):
        notes.append(f"Default: {getattr(option.default, 'value', option.default)}.")
    return " ".join(filter(None, notes))


def _prose(help_text: str) -> str:
    """Returns the help with its examples as blocks of code."""
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", help_text.replace("\b", "").strip()):
        text = " ".join(paragraph.split())
        said, colon, command = text.partition(": dragoman ")
        if colon:
            paragraphs += [f"{prose(said)}:", f"```text\ndragoman {command}\n```"]
        else:
            paragraphs.append(prose(text))
    return "\n\n".join(paragraphs)


def _first_paragraph(help_text: str) -> str:
    return help_text.strip().partition("\n\n")[0]
