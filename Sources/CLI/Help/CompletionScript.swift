/// The completion scripts. Each one calls `countersign complete` for the continuations of the line.
enum CompletionScript {
    static let bash = """
        # bash completion for countersign
        _countersign() {
            local current="${COMP_WORDS[COMP_CWORD]}" word about IFS=$'\\n'
            [[ $current == "=" ]] && current=""
            COMPREPLY=()
            while IFS=$'\\t' read -r word about; do
                if [[ $word == :files ]]; then
                    compopt -o filenames 2>/dev/null
                    COMPREPLY+=($(compgen -f -- "$current"))
                elif [[ $word == "$current"* ]]; then
                    COMPREPLY+=("$word")
                fi
            done < <(countersign complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" </dev/null 2>/dev/null)
        }
        complete -F _countersign countersign
        """

    static let zsh = """
        #compdef countersign
        _countersign() {
            local line word about found=1
            local -a items
            for line in "${(@f)$(countersign complete -- "${(@Q)words[2,CURRENT]}" </dev/null 2>/dev/null)}"; do
                case "$line" in
                "") ;;
                :files) _files && found=0 ;;
                *)
                    word="${line%%$'\\t'*}"
                    about="${line#"$word"}"
                    items+=("${word//:/\\\\:}:${about#$'\\t'}")
                    ;;
                esac
            done
            (( ${#items} )) && _describe countersign items && found=0
            return found
        }
        compdef _countersign countersign
        # As an autoloaded file, this script is the function's first call.
        if [[ "${funcstack[1]}" == _countersign ]]; then _countersign; fi
        """

    static let fish = """
        # fish completion for countersign
        function __countersign_complete
            set -l words (commandline -opc)[2..-1]
            set -l current (commandline -ct)
            for line in (countersign complete -- $words "$current" </dev/null 2>/dev/null)
                if test "$line" = :files
                    __fish_complete_path "$current"
                else
                    echo $line
                end
            end
        end
        complete -c countersign -f -a '(__countersign_complete)'
        """
}
