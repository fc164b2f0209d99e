"""The console script `skdplda`: private topics, their price, releases, attacks and audits, from the shell."""

import argparse
import difflib
import os
import re
import sys
import warnings
from importlib import import_module
from importlib.metadata import version

from skdplda._optional import import_optional
from skdplda.exceptions import PrivacyLeakWarning, UnreachableLedgerError

__all__ = ["main"]

USAGE_ERROR, BUG, INTERRUPTED, UNREAD = 2, 70, 130, 141  # the last two as shells count SIGINT and SIGPIPE
DESCRIPTION = "Differentially private topic models. See 'skdplda COMMAND --help'."
EXIT_CODES = """\
exit codes:
  0    done
  1    an audit refutes the claim
  2    usage, bad input, or an option or package that is missing
  70   a defect of skdplda; SKDPLDA_TRACEBACK=1 shows where
  130  interrupted
  141  whoever read the output, such as head, has left

Results go to the standard output, progress and warnings to the standard error.
"""
PRICED = "[options] CORPUS --epsilon E [--delta D]"
# The module that adds a command's arguments, what the command does, and its usage, if not as argparse writes it. The
# module is imported when its command is called: what most of them need takes a second to load.
COMMANDS = {
    "demo": ("_demo", "what topics look like with and without privacy", None),
    "fit": ("_models", "private topics of a corpus", PRICED),
    "cost": ("_cost", "what a fit would guarantee, without data", None),
    "top-words": ("_models", "the most relevant words of each topic", None),
    "show": ("_models", "the model card: the guarantee, the topics", None),
    "release": ("_models", "one file to publish, and its card, if a proof covers it", None),
    "transform": ("_models", "topic proportions of documents, as CSV", None),
    "insights": (
        "_insights",
        "private clusters of texts, with keywords, as one page",
        "[options]\n       CORPUS --vectors FILE --epsilon E --delta D --report PAGE",
    ),
    "ledger": ("_ledger", "what was spent on a data set, and what remains; or a new ledger", None),
    "attack": ("_attack", "who of a corpus is found in a model of half of it", PRICED),
    "audit": ("_attack", "a lower bound on epsilon, beside the claim", PRICED),
    "completion": ("_main", "what bash or zsh needs to complete commands and options", None),
}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors take one line, and say what a mistyped word may have meant."""

    words, commands = (), {}  # of the arguments; their parsers by name

    def parse_known_args(self, args=None, namespace=None):
        self.words = tuple(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def error(self, message):
        self.exit(USAGE_ERROR, f"{self.prog}: error: {message}{self._did_you_mean()}\n")

    def _did_you_mean(self):
        """Return the end of an error: what the first word that is not known may have meant."""
        command = next((word for word in self.words if not word.startswith("-")), None) if self.commands else None
        if self.commands and command not in self.commands:
            word, known = command, list(self.commands)
        else:
            known = re.findall(r"--[a-z][\w-]*", self.commands.get(command, self).format_help())
            options = (word.partition("=")[0] for word in self.words if word.startswith("--") and len(word) > 2)
            word = next((option for option in options if option not in known), None)
        close = difflib.get_close_matches(word or "", known, 1)
        return f"; did you mean {close[0]!r}?" if close else ""


def main(argv: list[str] | None = None) -> int:
    """Run a command, where the kernels could be loaded."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before the start
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    try:
        try:
            words = sys.argv[1:] if argv is None else argv
            parser = _parser(words)
            args = parser.parse_args(words)
            if args.command is None:
                parser.print_help()
                return 0
        finally:
            sys.stdout.flush()  # the help is printed
    except BrokenPipeError:
        return _unread()
    from skdplda.cli._paths import refuse_clashes  # not before the help is printed

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", PrivacyLeakWarning)
            warnings.showwarning = _show_warning
            refuse_clashes(args)
            code = args.run(args)
            sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"\nskdplda: interrupted{_where_to_resume(args)}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader, such as head, has seen enough
        return _unread()
    except (ValueError, OSError, ImportError, MemoryError, OverflowError, UnreachableLedgerError) as error:
        message = " ".join(str(error).split()) or "there is not enough memory."
        print(f"skdplda {args.command}: error: {message}", file=sys.stderr)
        return USAGE_ERROR
    except Exception as error:
        if os.environ.get("SKDPLDA_TRACEBACK"):
            raise
        message = " ".join(f"{type(error).__name__}: {error}".split())
        hint = "this is a defect of skdplda; set SKDPLDA_TRACEBACK=1 to see where, and report it."
        print(f"skdplda {args.command}: error: {message}; {hint}", file=sys.stderr)
        return BUG
    return code or 0


def _unread():
    """Send the rest of the output nowhere, so that the interpreter does not complain of it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return UNREAD


def _parser(words=COMMANDS):
    """Return the parser of all commands; those that are among `words` have their arguments."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog="skdplda", description=DESCRIPTION, epilog=EXIT_CODES, formatter_class=shape, allow_abbrev=False
    )
    parser.add_argument("-V", "--version", action="version", version=f"skdplda {version('skdplda')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, (module, text, usage) in COMMANDS.items():
        about = {"help": text, "description": f"{text[0].upper()}{text[1:]}."}
        command = commands.add_parser(name, usage=usage and f"skdplda {name} {usage}", allow_abbrev=False, **about)
        if name in words:
            getattr(import_module(f"skdplda.cli.{module}"), f"add_{name.replace('-', '_')}")(command)
    parser.commands = commands.choices
    return parser


def add_completion(command):
    """Add the arguments of `completion`."""
    command.add_argument("shell", choices=("bash", "zsh"), metavar="SHELL", help="bash or zsh")
    command.set_defaults(run=_complete)


def _complete(args):
    shtab = import_optional("shtab", purpose="Completion", install="shtab")
    print(shtab.complete(_parser(), shell=args.shell))


def _where_to_resume(args):
    """Return the end of the sentence that an interrupted user reads."""
    directory = getattr(args, "directory", None)
    if directory is not None:
        return f"; the models trained are in {directory}: run the same command to go on. It is as private as the data."
    checkpoint = getattr(args, "checkpoint", None)
    if checkpoint is None:
        return "; nothing was saved."
    if not os.path.exists(checkpoint):
        return f"; the checkpoint {checkpoint} was not written yet."
    return f"; the rounds done are in {checkpoint}: run the same command to go on. It is as private as the data."


def _show_warning(message, category, filename, lineno, file=None, line=None):
    print(f"skdplda: warning: {' '.join(str(message).split())}", file=sys.stderr)
