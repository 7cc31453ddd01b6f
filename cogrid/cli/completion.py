"""``cogrid completion``."""

from __future__ import annotations

import click

from cogrid.cli.complete import VARIABLE
from cogrid.cli.output import print_piece

BASH = r"""
_cogrid_completion() {
    local line="${COMP_LINE:0:COMP_POINT}"
    local -a words
    IFS=$' \t\n' read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    local word="${words[${#words[@]}-1]}"
    [[ "$word" == --*=* ]] && word="${word#*=}"
    # Bash takes a colon for the end of a word: what stands before the last one is there already.
    local there=""
    [[ "$COMP_WORDBREAKS" == *:* && "$word" == *:* ]] && there="${word%:*}:"
    local IFS=$'\n' completion type value
    COMPREPLY=()
    for completion in $(COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) \
            VARIABLE=bash_complete "$1" 2> /dev/null); do
        IFS=',' read -r type value <<< "$completion"
        case "$type" in
            plain) COMPREPLY+=("${value#"$there"}") ;;
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
        esac
    done
}
complete -F _cogrid_completion cogrid
""".lstrip()


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def command(shell: str) -> None:
    """The script that makes a shell complete commands, options, and the grid's own names: workers,
    models, tasks.

    \b
    eval "$(cogrid completion bash)"                                   # in ~/.bashrc
    eval "$(cogrid completion zsh)"                                    # in ~/.zshrc
    cogrid completion fish > ~/.config/fish/completions/cogrid.fish
    """
    print_piece(_script(shell))


def _script(shell: str) -> str:
    if shell == "bash":
        return BASH.replace("VARIABLE", VARIABLE)
    from click.shell_completion import get_completion_class

    from cogrid.cli.main import command as root

    found = get_completion_class(shell)
    assert found is not None
    return found(root, {}, "cogrid", VARIABLE).source()
