# Completion of 5spot for bash. To load it in every shell, add this to ~/.bashrc:
#   source <(5spot completion bash)

_5spot() {
    local line=${COMP_LINE:0:COMP_POINT} program=${1/#\~\//$HOME/}
    local -a words answer
    local value prefix directive last
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    COMPREPLY=()

    answer=()
    while IFS=$'\t' read -r value _; do
        answer+=("$value")
    done < <("$program" __complete "${words[@]:1}" 2> /dev/null)
    last=$((${#answer[@]} - 1))
    ((last >= 0)) || return
    directive=${answer[last]#:}
    unset "answer[last]"

    # bash replaces only what follows the last of these characters.
    prefix=${words[${#words[@]} - 1]}
    while [[ -n $prefix && $COMP_WORDBREAKS != *"${prefix: -1}"* ]]; do
        prefix=${prefix%?}
    done
    for value in "${answer[@]}"; do
        printf -v value %q "${value#"$prefix"}"
        COMPREPLY+=("$value")
    done

    # bash 3 has no compopt.
    if type compopt &> /dev/null; then
        ((directive & 2)) && compopt -o nospace
        ((directive & 4)) || compopt -o default
    fi
    return 0
}

complete -F _5spot 5spot kubectl-5spot
