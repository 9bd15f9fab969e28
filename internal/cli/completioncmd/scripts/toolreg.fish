# fish completion for toolreg. It never evaluates the command line or the completions.
function __toolreg_complete
    set -l words (commandline -opc)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    command -q -- $program; or set program toolreg
    set -l typed (commandline -ct)
    set -l word (string unescape -- $typed); or set word $typed
    set -l lines (command $program complete fish $words[2..-1] "$word" 2>/dev/null)
    set -l flag (string match -r '^-[^=]*=' -- $word)
    set -l value (string replace -r '^-[^=]*=' '' -- $word)
    switch "$lines[1]"
        case files
            printf "%s\n" "$flag"(__fish_complete_path "$value")
        case dirs
            printf "%s\n" "$flag"(__fish_complete_directories "$value")
        case '*'
            printf '%s\n' $lines[2..-1]
    end
end
complete -c toolreg -e
complete -c toolreg -k -f -a '(__toolreg_complete)'
