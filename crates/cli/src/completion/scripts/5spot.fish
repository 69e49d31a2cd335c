# Completion of 5spot for fish. To load it in every shell:
#   5spot completion fish > ~/.config/fish/completions/5spot.fish

function __5spot_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l answer ($program __complete $words[2..-1] "$current" 2>/dev/null)
    test (count $answer) -gt 0; or return
    if test (count $answer) -gt 1
        printf '%s\n' $answer[1..-2]
    else if test $answer[-1] = :0
        __fish_complete_path "$current"
    end
end

complete -c 5spot -f -a '(__5spot_complete)'
complete -c kubectl-5spot -f -a '(__5spot_complete)'
