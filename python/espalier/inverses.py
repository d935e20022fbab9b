"""Which relation is which the other way round: by name and edges, by the user's word, or made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .errors import DataError
from .graph import Relation, VertexType, check_name

INVERSE = "rev_"


def join_inverses(types: list[VertexType], relations: list[Relation]) -> None:
    """NAME and rev_NAME that have the same edges are inverses."""
    place = {(of.source, of.name, of.target): at for at, of in enumerate(relations)}
    for at, of in enumerate(relations):
        other = place.get((of.target, INVERSE + of.name, of.source))
        if (
            other is not None
            and of.turned is relations[other].turned is None
            and of.inverse == relations[other].inverse == -1
            and relations[other].entries.same_places(of.entries.reversed())
        ):
            of.inverse, relations[other].inverse = other, at


def _find_relation(name: Any, types: list[VertexType], relations: list[Relation]) -> int:
    found = [
        at
        for at, of in enumerate(relations)
        if isinstance(name, (str, tuple))
        and name in (of.name, (types[of.source].name, of.name, types[of.target].name))
    ]
    if len(found) != 1:
        raise DataError(
            f"inverse names {name!r}, which is {'no relation' if not found else 'several'}; give "
            "{(source, relation, target): (source, relation, target)}"
        )
    return found[0]


def declare_inverses(inverse: Any, types: list[VertexType], relations: list[Relation]) -> None:
    """What the user says, where it is so."""
    if not isinstance(inverse, dict):
        raise DataError(f"inverse is {inverse!r}; give {{relation: its inverse}}")
    for names in inverse.items():
        one, other = (_find_relation(name, types, relations) for name in names)
        for at, with_whom in ((one, other), (other, one)):
            if relations[at].inverse not in (-1, with_whom):
                raise DataError(
                    f"inverse: {names[0]!r} and {names[1]!r}, but one of them has the inverse "
                    f"{relations[relations[at].inverse].name!r}; leave one of them out"
                )
        of, turned = relations[one], relations[other]
        if (of.source, of.target) != (turned.target, turned.source):
            raise DataError(f"inverse: {names[0]!r} and {names[1]!r} join other types")
        if not turned.entries.same_places(of.entries.reversed()):
            theirs = set(zip(turned.entries.targets.tolist(), turned.entries.sources.tolist()))
            ours = set(zip(of.entries.sources.tolist(), of.entries.targets.tolist()))
            target, source = min(ours ^ theirs)
            has, lacks = names if (target, source) in ours else names[::-1]
            ends = (target, source) if has == names[0] else (source, target)
            raise DataError(
                f"inverse: {has!r} has the edge {ends[0]} to {ends[1]}, but {lacks!r} has not "
                f"{ends[1]} to {ends[0]}; leave it out (espalier prepare --also takes out what says "
                "a link)"
            )
        of.inverse, turned.inverse = other, one


def add_inverses(relations: list[Relation], of_all: bool) -> None:
    """Those that relations name; `of_all`: also of others that have none. One that is its own needs
    none."""
    names = {(of.source, of.name, of.target) for of in relations}
    for at, of in enumerate(list(relations)):
        name = of.turned
        if name is None and of_all and of.inverse < 0 and not _is_its_own(of):
            name = INVERSE + of.name
        if not isinstance(name, str) or not name:
            continue
        if (of.target, name, of.source) in names:
            raise DataError(
                f"the relation {name!r} is there, and has other edges than the inverse of {of.name!r}, "
                "which would be called so; give either another name"
            )
        names.add((of.target, check_name("relation", name), of.source))
        of.inverse = len(relations)
        relations.append(replace(of, source=of.target, name=name, target=of.source, inverse=at))
        relations[-1].entries = of.entries.reversed()


def _is_its_own(of: Relation) -> bool:
    return of.source == of.target and of.entries.same_places(of.entries.reversed())


def is_directed(relations: list[Relation]) -> bool:
    """Goes some edge one way? Of a relation that says how it is turned its word counts."""
    return not all(
        of.inverse >= 0 or of.turned is True or (of.turned is None and _is_its_own(of))
        for of in relations
    )
