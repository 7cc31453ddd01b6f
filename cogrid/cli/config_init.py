"""``cogrid config init``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cogrid.cli.documents import answers
from cogrid.cli.options import with_json
from cogrid.cli.output import print_json, print_line


@click.command()
@click.argument("file", required=False)
@answers("cogrid.ops.settings:Written")
@with_json
def command(file: str | None, as_json: bool) -> None:
    """Write a configuration file with every key, its default and a word about it, all commented
    out. Without FILE: the user's own. A file that is there is never touched.

    \b
    cogrid config init
    cogrid config init ./cogrid.toml
    """
    from cogrid.ops.settings import user_file, write_example

    written = write_example(Path(file).expanduser() if file else user_file(os.environ))
    if as_json:
        print_json(written)
    else:
        print_line(f"wrote {written.file}")
