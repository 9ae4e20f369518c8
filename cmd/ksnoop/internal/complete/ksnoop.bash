# Completion of ksnoop for bash.

_ksnoop() {
	local answer i
	readarray -t answer < <("${1/#\~/$HOME}" __complete --bash "$COMP_WORDBREAKS" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
	COMPREPLY=()
	case ${answer[0]} in
	files)
		compopt +o nospace -o default
		;;
	directories)
		compopt +o nospace -o dirnames
		;;
	command)
		for ((i = 1; i < COMP_CWORD; i++)); do
			[[ ${COMP_WORDS[i]} == -- ]] && break
		done
		if declare -F _command_offset >/dev/null; then
			_command_offset $((i + 1))
		elif ((COMP_CWORD == i + 1)); then
			compopt +o nospace
			readarray -t COMPREPLY < <(compgen -c -- "$2")
		else
			compopt +o nospace -o default
		fi
		;;
	words)
		compopt +o nospace
		;&
	parts)
		COMPREPLY=("${answer[@]:1}")
		COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
		;;
	esac
}

complete -o nospace -F _ksnoop ksnoop
