"""Files that the commands read and write: none may take the place of another, or of a former one."""

import os
from pathlib import Path

from skdplda._files import refuse_existing

OUTPUTS = ("topics.zip", "top_words.csv", "privacy.txt", "privacy.json")  # of `fit`, in its folder


def with_cards(path):
    """Return the file of a released model, and its cards."""
    path = Path(path)
    return [path, *(path.with_name(path.stem + suffix) for suffix in (".card.md", ".card.json"))]


def words_file(checkpoint):
    """Return where the words of an interrupted fit are kept, beside its checkpoint."""
    return Path(f"{checkpoint}.words")


def model_file(path):
    """Return the file of a model, of a folder that `fit` wrote its own."""
    path = Path(path)
    return path / OUTPUTS[0] if path.is_dir() else path


# Every option that names a file, by its place in the parsed arguments (a test goes through all parsers): what it is
# called, and the paths that the command reads, or writes. That of `output` depends on the command.
READ = {
    "corpus": ("CORPUS", lambda path: [] if path == "-" else [path]),
    "model_path": ("MODEL", lambda path: [model_file(path)]),
    "vocabulary": ("--vocabulary", lambda path: [path]),
    "vectors": ("--vectors", lambda path: [path]),
    "labels": ("--labels", lambda path: [path]),
    "topic_matrix": ("--topic-matrix", lambda path: [path]),
    "members": ("--members", lambda path: [path]),
}
WRITTEN = {
    "checkpoint": ("--checkpoint", lambda path: [path, words_file(path)]),
    "directory": ("--directory", lambda path: [path]),
    "figure": ("--figure", lambda path: [path]),
    "ledger": ("--ledger", lambda path: [path]),
    "release": ("--release", with_cards),
    "report": ("--report", lambda path: [path]),
}
OUTPUT = {  # by command
    "fit": ("--output", lambda path: [path, *(Path(path) / name for name in OUTPUTS)]),
    "release": ("FILE", with_cards),
    "transform": ("--output", lambda path: [path]),
}


def refuse_clashes(args):
    """Refuse a command that would write a file in the place of one that it reads, or writes itself.

    Links and other spellings of a path are that path. It is checked before anything is read, so that nothing is spent.
    """
    written = {**WRITTEN, "output": OUTPUT.get(args.command)}
    reads = [(label, Path(path)) for label, paths in _given(args, READ) for path in paths]
    writes = [(label, Path(path)) for label, paths in _given(args, written) for path in paths]
    for place, (label, path) in enumerate(writes):
        for other, taken in writes[:place]:
            if other != label and _are_one(path, taken):
                raise ValueError(f"{label} and {other} would both write {os.fspath(path)!r}; give another name.")
        for other, source in reads:
            if _are_one(path, source):
                raise ValueError(f"{label}: {os.fspath(path)!r} would take the place of {other}; give another name.")
            if path.suffix == ".txt" and source.is_dir() and _place(source) in _place(path).parents:
                raise ValueError(
                    f"{label}: {os.fspath(path)!r} would be a document of {other}, a folder of .txt files; give another"
                    " name."
                )


def _given(args, options):
    """Yield (what it is called, paths) of the options that were given."""
    for name, option in options.items():
        value = getattr(args, name, None)
        if value is not None and option is not None:
            label, paths = option
            yield label, paths(value)


def _place(path):
    """Return where a path leads, links followed; of one that is not there, where it would."""
    return Path(os.path.realpath(path))


def _are_one(path, other):
    """Whether two paths are of one file: by name, or by what is there."""
    try:
        return _place(path) == _place(other) or os.path.samefile(path, other)
    except OSError:  # one is not there, or cannot be looked at
        return False


def refuse_page(args):
    """Refuse a page that could not be written, or would replace a file, before any budget is spent."""
    if args.report is not None:
        refuse_output(args, "--report", Path(args.report))


def refuse_output(args, option, path, *beside):
    """Refuse a file, and others beside it, that could not be written, or would replace one."""
    if not path.parent.is_dir():
        raise ValueError(f"{option}: there is no folder {os.fspath(path.parent)!r}.")
    if path.is_dir():
        raise ValueError(f"{option}: {os.fspath(path)!r} is a folder; name a file.")
    refuse_files(args, option, [path, *beside])


def refuse_files(args, option, paths):
    """Refuse to write over files, without --overwrite."""
    try:
        refuse_existing(*() if args.overwrite else paths)
    except FileExistsError as error:
        raise ValueError(f"{option}: {str(error).partition(';')[0]}; give another name, or --overwrite.") from None
