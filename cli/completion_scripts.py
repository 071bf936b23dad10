"""What shells are told to complete `kavka` with: each asks `kavka completion SHELL --words ...`."""

from typing import Final

_BASH: Final = """\
_kavka() {
    local IFS=$'\\n'
    COMPREPLY=($(kavka completion bash --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} -gt 0 ]] || compopt -o default
}
complete -F _kavka kavka"""

_ZSH: Final = """\
#compdef kavka
_kavka() {
    local -a found
    found=("${(@f)$(kavka completion zsh --words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[*]}" ]]; then compadd -a found; else _files; fi
}
compdef _kavka kavka"""

_FISH: Final = """\
function __kavka_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (kavka completion fish --words $words[2..-1] 2>/dev/null)
    if test -n "$found"; printf '%s\\n' $found; else; __fish_complete_path (commandline -ct); end
end
complete -c kavka -f -a '(__kavka_complete)'"""

SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
