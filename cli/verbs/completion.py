"""`kavka completion bash|zsh|fish`: a script that completes commands, flags and topics in that shell."""

import argparse

from kavka.cli.output import emit

HELP = "print the completion script of a shell"
EXAMPLE = "kavka completion bash > ~/.local/share/bash-completion/completions/kavka"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    # What the scripts call: the words of the line so far, the last one perhaps empty.
    parser.add_argument("--words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.completing import candidates
    from kavka.cli.completion_scripts import SCRIPTS

    if args.words is None:
        emit(SCRIPTS[args.shell])
        return 0
    for candidate in candidates(args.words or [""]):
        emit(candidate)
    return 0
