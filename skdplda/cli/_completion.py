"""Completion of the command line in bash and zsh, and what a mistyped word may have meant."""

import argparse
import difflib

__all__ = ["add_completion", "did_you_mean"]

BASH = """\
# skdplda completion bash >> ~/.bashrc
_skdplda() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} last=${{COMP_WORDS[COMP_CWORD-1]}} words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    else
        case "${{COMP_WORDS[1]}} $last" in
{values}
            *)
                case "${{COMP_WORDS[1]}}" in
{options}
                esac ;;
        esac
        [[ $word == -* || $words != -* ]] || words=""
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _skdplda skdplda
"""
ZSH = """\
# skdplda completion zsh >> ~/.zshrc
autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
"""


def commands_of(parser):
    """Return the parsers of the commands, by name."""
    groups = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return next((dict(group.choices) for group in groups), {})


def options_of(parser):
    """Return the long options of a command."""
    return sorted(name for name in parser._option_string_actions if name.startswith("--"))


def add_completion(add, parser):
    """Add the command that prints the script of a shell."""
    command = add("completion", "what bash or zsh needs to complete commands and options")
    command.add_argument("shell", choices=("bash", "zsh"), metavar="SHELL", help="bash or zsh")
    command.set_defaults(run=lambda args: print(script(parser, args.shell), end=""))


def script(parser, shell):
    """Return the script that completes the commands, options and choices of a parser."""
    values, options = [], []
    for name, command in commands_of(parser).items():
        options.append(f'                    {name}) words="{" ".join(options_of(command))}" ;;')
        for option, action in sorted(command._option_string_actions.items()):
            if action.choices and option.startswith("--"):
                values.append(f'            "{name} {option}") words="{" ".join(map(str, action.choices))}" ;;')
    text = BASH.format(commands=" ".join(commands_of(parser)), values="\n".join(values), options="\n".join(options))
    return text if shell == "bash" else ZSH + text.partition("\n")[2]


def did_you_mean(parser, words):
    """Return the end of an error: what the first word that the parser does not know may have meant."""
    commands = commands_of(parser)
    command = next((word for word in words if not word.startswith("-")), None) if commands else None
    if commands and command not in commands:
        return suggestion(command, commands)
    known = options_of(commands[command] if commands else parser)
    unknown = (word.partition("=")[0] for word in words if word.startswith("--") and len(word) > 2)
    return suggestion(next((word for word in unknown if word not in known), None), known)


def suggestion(word, known):
    """Return a question, or nothing."""
    close = difflib.get_close_matches(word or "", known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""
