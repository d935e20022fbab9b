"""The version: the program's, as include/espalier/base/version.hpp has it; a test holds them equal."""

VERSION = "0.1.0"
