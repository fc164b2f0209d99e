"""Import of what is not always installed, with one helpful error."""

from importlib import import_module


def import_optional(module, *, purpose, install):
    """Import a module by its absolute name, or say in an ImportError what to give to pip (`install`), and what for.

    `purpose` is the subject of the message. An installed package that fails to import raises its own error.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ImportError(
            f'{purpose} needs {package}, which is not installed. Install it with: pip install "{install}"'
        ) from None
