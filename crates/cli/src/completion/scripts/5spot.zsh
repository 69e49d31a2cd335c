#compdef 5spot kubectl-5spot
# Completion of 5spot for zsh. To load it, save it as _5spot in a directory of $fpath, or add this to ~/.zshrc after compinit:
#   source <(5spot completion zsh)

_5spot() {
    local -a answer entries
    local line value directive program=${(Q)words[1]}
    program=${program/#\~\//$HOME/}
    answer=("${(@f)$("$program" __complete "${(@Q)words[2,CURRENT]}" 2> /dev/null)}")
    directive=${answer[-1]#:}
    [[ -n $directive ]] || return 1
    for line in "${(@)answer[1,-2]}"; do
        value=${line%%$'\t'*}
        entries+=("${value//:/\\:}${${line#"$value"}/#$'\t'/:}")
    done

    if ((${#entries} == 0)); then
        ((directive & 4)) || _files
    elif ((directive & 2)); then
        _describe -t values 5spot entries -S ''
    else
        _describe -t values 5spot entries
    fi
}

# As a file of $fpath it is the function itself, and runs when it is loaded.
if [[ ${funcstack[1]} == _5spot ]]; then
    _5spot "$@"
else
    compdef _5spot 5spot kubectl-5spot
fi
