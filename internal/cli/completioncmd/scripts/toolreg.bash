# bash completion for toolreg. It needs no other package, and never evaluates the
# command line or the completions.
_toolreg() {
    local program=${COMP_WORDS[0]/#'~/'/"$HOME/"} kind reply
    type -P -- "$program" >/dev/null || program=toolreg # an alias
    COMPREPLY=()
    {
        IFS= read -r kind
        while IFS= read -r reply; do COMPREPLY+=("$reply"); done
    } < <(command "$program" complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_TYPE" "$COLUMNS" "$COMP_WORDBREAKS" 2>/dev/null)
    case $kind in
    files) compopt +o nospace -o default 2>/dev/null ;;
    dirs) compopt +o nospace -o dirnames 2>/dev/null ;;
    *) compopt -o nosort 2>/dev/null ;; # bash 4.4
    esac
}
complete -o nospace -F _toolreg toolreg
