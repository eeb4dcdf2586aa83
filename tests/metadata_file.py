"""Change torch's .metadata files for tests, without torch: what they pickle becomes stand-ins with `arguments`
and a `state`, and is written again as it was."""
import copyreg
import os
import pickle
import sys
import types
from contextlib import contextmanager


class StandIn:
    """An object of the pickle: made by a call with arguments, or anew with a state."""

    def __new__(cls, *arguments):
        made = object.__new__(cls)
        made.arguments, made.state = arguments, None
        return made

    def __setstate__(self, state):
        self.state = state

    def __reduce__(self):
        if self.arguments:
            return type(self), self.arguments
        return (copyreg.__newobj__, (type(self),)) + ((self.state,) if self.state is not None else ())


def stand_in(module, name):
    """What a pickle names, so that Python's pickler finds it there."""
    parent = sys.modules.setdefault(module, types.ModuleType(module))
    return parent.__dict__.setdefault(name, type(name, (StandIn,), {"__module__": module, "__qualname__": name}))


class Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        return stand_in(module, name)


@contextmanager
def changed(path):
    """The object of a file, which is written again at the end."""
    os.chmod(path, 0o644)
    with open(path, "rb") as file:
        metadata = Unpickler(file).load()
    yield metadata
    with open(path, "wb") as file:
        pickle.dump(metadata, file, protocol=4)
