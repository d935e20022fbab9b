#!/usr/bin/env python3
"""Wraps the comments of C++ and CUDA sources at 100 columns.

    wrap_comments.py [--check] [--against REVISION] [FILE...]

Only paragraphs with a wider line are filled anew. A paragraph is a run of comment lines of one
marker and indent; a line that ends a sentence, though the next word would have fit, ends it. Lists
keep their hanging indent. Tables, drawings and formulas (two spaces in a row, boxes, arrows) stay
as they are: mend them by hand. A comment after code is continued below itself, where
it has room and is a member's (///<) or stands in a column of such; else it moves above its
statement, or into its block, and becomes a sentence.

--check writes nothing, lists comments that are too wide and exits 1. Nothing is written that
changes the code or the words of the comments, and --against checks that against a revision.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import textwrap

COLUMNS = 100
ROOM = 40   # columns that a comment beside code needs
WIDOW = 10  # a last line that is shorter looks lost
TOKEN = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\''
                   r'|/\*(?:.|\n)*?\*/|(?P<comment>//[^\n]*)')
COMMENT = re.compile(r"(///<|///|//) ?(.*)")
FIXED = re.compile(r" |.*\S  |.*[\u2190-\u21ff\u2500-\u25ff]|.*-{4}|clang-format |(long )?ranks:|SPDX|Copyright")
ITEM = re.compile(r"(?:[-*]|\d+[.)]) ")
# What is not divided: [a, b], `a b`, and an operator, or a number with a full stop, from what precedes it.
ATOM = re.compile(r"(?:\[[^][()]{,30}[\])]|`[^`]{,40}`|\S)+(?: (?:[-+=*/<>]|\d+[.)])(?= |$))*")


def comment_columns(text):
    """Line number (from 0) -> column, of every line that has a comment."""
    starts = [match.start() for match in TOKEN.finditer(text) if match["comment"]]
    return {text.count("\n", 0, start): start - text.rfind("\n", 0, start) - 1 for start in starts}


def code_and_words(text):
    """Without space; of comments without capitals and full stops, since some become sentences."""
    comments = [COMMENT.fullmatch(match["comment"])[2] for match in TOKEN.finditer(text) if match["comment"]]
    code = TOKEN.sub(lambda match: "" if match["comment"] else match[0], text)
    return "".join(code.split()), [word for comment in comments for word in re.findall(r"[^\s.]+", comment.lower())]


def fill(text, first, rest):
    """Lines that begin with `first` and `rest`, narrower ones if that leaves no word lost on the last."""
    glued = ATOM.sub(lambda match: match[0].replace(" ", "\0"), " ".join(text.split()))
    tries = [textwrap.wrap(glued, width, initial_indent=first, subsequent_indent=rest, break_long_words=False,
                           break_on_hyphens=False) for width in range(COLUMNS, COLUMNS - 2 * WIDOW, -1)]
    good = [lines for lines in tries if len(lines) == len(tries[0]) and len(lines[-1]) >= len(rest) + WIDOW]
    return [line.replace("\0", " ") for line in (good or tries)[0]]


def sentence(text):
    """With a capital and a full stop, unless it begins with a symbol or a name."""
    return text[0].upper() + text[1:].rstrip(".") + "." if re.match(r"(a|[a-z]{2,})[,:]? [\w(`]", text) else text


def paragraphs(texts):
    """Lists of texts (of lines, without the marker) that may be filled together."""
    result = [[""]]
    for text in texts:
        item, last = ITEM.match(result[-1][0]), result[-1][-1]
        hangs = item and re.match(r" {2,3}\S", text) and not FIXED.match(text.strip())
        ends = re.search(r"[.:;]\)?$", last)
        fits = text and len(last) + 1 + len(text.split()[0]) <= COLUMNS
        begins = (item or ends) and ITEM.match(text) or ends and fits and not text[0].islower()
        if not text or not last or begins or FIXED.match(result[-1][0]) or (FIXED.match(text) and not hangs):
            result.append([text])
        else:
            result[-1].append(text)
    return result[1:]


def wrap_run(lines, prefix):
    """A run of comment lines that all begin with `prefix`, the indent and the marker."""
    for texts in paragraphs([line[len(prefix):].removeprefix(" ") for line in lines]):
        whole = [f"{prefix} {text}".rstrip() for text in texts]
        item = ITEM.match(texts[0])
        if FIXED.match(texts[0]) or max(map(len, whole)) <= COLUMNS:
            yield from whole
        else:
            yield from fill(" ".join(texts), f"{prefix} ", f"{prefix} " + " " * (item.end() if item else 0))


def wrap_trailing(written, lines, column, in_column):
    """A comment after code, and the lines that continue it: appended to `written`, or put into it."""
    code, marker = lines[0][:column].rstrip(), COMMENT.match(lines[0][column:])[1]
    texts = [COMMENT.match(line[column:])[2] for line in lines]
    torn = marker == "///<" and written and re.search(r"^\s+[^/]*[\w>=]$", written[-1])
    if torn:  # for lack of room the declaration has two lines
        code = f"{written.pop()} {code.lstrip()}"
        column = len(code) + 2
    beside, text = f"{' ' * column}{marker} ", " ".join(texts)
    inside = " " * (len(code) - len(code.lstrip()) + 2) + "// "
    if any(map(FIXED.match, texts)) or not torn and max(map(len, lines)) <= COLUMNS:
        written += lines
    elif (marker == "///<" or len(lines) > 1 or in_column) and COLUMNS - len(beside) >= ROOM:
        written += fill(text, f"{code.ljust(column)}{marker} ", beside)
    elif code.endswith("{"):
        written += [code, *fill(sentence(text), inside, inside)]
    else:
        place = len(written)
        while place and not re.search(r"(^|[;{}]|\S:)\s*(//.*)?$|^\s*#", written[place - 1]):
            place -= 1
        first = (written + [code])[place]
        above = first[:len(first) - len(first.lstrip())] + marker.rstrip("<") + " "
        written[place:] = [*fill(sentence(text), above, above), *written[place:], code]


def wrapped(text):
    lines, columns, written, at = text.split("\n"), comment_columns(text), [], 0
    while at < len(lines):
        column, end = columns.get(at), at + 1
        marker = COMMENT.match(lines[at][column:])[1] if at in columns else None
        while marker and columns.get(end) == column and not lines[end][:column].strip() and (
                COMMENT.match(lines[end][column:])[1] == marker):
            end += 1
        if not marker:
            written.append(lines[at])
        elif lines[at][:column].strip():
            wrap_trailing(written, lines[at:end], column, column in (columns.get(at - 1), columns.get(end)))
        else:
            written += wrap_run(lines[at:end], lines[at][:column] + marker)
        at = end
    return "\n".join(written)


def too_wide(text):
    """(line, width) of the comments that end beyond their limit, but for single words."""
    for number, column in sorted(comment_columns(text).items()):
        line = text.split("\n")[number]
        said = COMMENT.match(line[column:])[2]
        one_word = not line[:column].strip() and len(ITEM.sub("", said).split()) == 1
        if len(line) > COLUMNS and not one_word:
            yield number + 1, len(line)


def sources():
    return sorted(path for top in ("src", "include", "tests", "bench") for path in pathlib.Path(top).rglob("*")
                  if path.suffix in (".hpp", ".cpp", ".cu", ".cuh"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--against", metavar="REVISION")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    problems = []
    for path in arguments.files or sources():
        text = path.read_text(encoding="utf-8")
        after = text if arguments.check else wrapped(text)
        before = text if not arguments.against else subprocess.run(
            ["git", "show", f"{arguments.against}:./{path}"], check=True, stdout=subprocess.PIPE, text=True).stdout
        if code_and_words(after) != code_and_words(before):
            problems.append(f"{path}: the code or the words of comments differ; not written")
        elif after != text:
            path.write_text(after, encoding="utf-8")
        if arguments.check:
            problems += [f"{path}:{line}: a comment ends in column {width}" for line, width in too_wide(text)]
    print("\n".join(problems) if problems else "comments ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
