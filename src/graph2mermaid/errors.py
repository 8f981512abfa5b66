"""The errors a user can act on."""

from __future__ import annotations


class Graph2MermaidError(Exception):
    """Something the caller can put right.

    The message is one line: what is wrong, where, and what to type instead. The command line
    prints it as it is and exits with status 2.
    """


class TargetError(Graph2MermaidError):
    """A target does not exist, cannot be loaded, or is not something that can be traced."""


class SignatureError(Graph2MermaidError):
    """The given inputs do not fit the function: a wrong name, a wrong form, a wrong count."""


class TraceError(Graph2MermaidError):
    """The function was found, but TensorFlow could not trace it."""


class CaptureError(Graph2MermaidError):
    """A capture file is damaged, is of a newer schema, or is not a capture at all."""


class MissingDependencyError(Graph2MermaidError):
    """An optional package is needed; the message names the extra that installs it."""
