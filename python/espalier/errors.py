"""What is raised and warned of: one kind each, so that a program can tell bad data from a bug."""

from __future__ import annotations


class DataError(ValueError):
    """Data that cannot become a graph file, a file that is not what it should be, a job's config or
    a call that is wrong. The message says what is wrong, where first, and what to do."""


class DataWarning(UserWarning):
    """What was changed on the way into the file, as edges that became one; what the library
    warns of."""


class JobError(RuntimeError):
    """A defect, or a broken machine: the job can only be closed, and other ranks may wait for this
    one."""
