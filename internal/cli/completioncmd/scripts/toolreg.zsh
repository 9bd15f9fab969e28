#compdef toolreg
# zsh completion for toolreg. It never evaluates the command line or the completions.
_toolreg() {
    local program=${${(Q)words[1]}/#'~/'/$HOME/} kind word text
    local -a closed open
    (( $+commands[$program] )) || [[ $program == */* && -x $program ]] || program=toolreg
    {
        IFS= read -r kind
        while IFS=$'\t' read -r word text; do
            word=${word//:/\\:}${text:+:$text}
            if [[ ${word%%:*} == *[=/] ]]; then open+=("$word"); else closed+=("$word"); fi
        done
    } < <(command "$program" complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    if [[ $kind == (files|dirs) ]]; then
        [[ $PREFIX == -*=* ]] && compset -P 1 '*='
        [[ $kind == dirs ]] && { _files -/; return }
        _files
        return
    fi
    _describe -V toolreg closed -- open -S ''
}
compdef _toolreg toolreg
# When zsh loads this file as a function, it is being called.
if [[ $funcstack[1] == _toolreg ]]; then _toolreg; fi
