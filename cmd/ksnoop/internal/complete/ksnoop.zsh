#compdef ksnoop
# Completion of ksnoop for zsh: a file called _ksnoop in a directory of $fpath, or sourced.

_ksnoop() {
	local kind line word
	local -a answer texts notes
	word="${(Q)${:-$compstate[quote]$PREFIX${compstate[quote][-1]}}}" # in open quotes, which PREFIX does not have
	answer=("${(@f)$(${(Q)words[1]} __complete -- ${(Q)words[2,CURRENT-1]} "$word" 2>/dev/null)}")
	kind=$answer[1]
	for line in $answer[2,-1]; do
		texts+=("${line%%$'\t'*}")
		notes+=("${line/$'\t'/  }")
	done
	[[ $kind == (files|directories) ]] && compset -P 1 '--*='
	case $kind in
	files)
		_files
		;;
	directories)
		_files -/
		;;
	command)
		local -i at=$words[(i)--]
		shift at words
		((CURRENT -= at))
		_normal
		;;
	words)
		((#texts)) && compadd -l -d notes -- $texts
		;;
	parts)
		((#texts)) && compadd -S '' -d notes -- $texts
		;;
	esac
}

if [[ $funcstack[1] == _ksnoop ]]; then
	_ksnoop "$@"
else
	compdef _ksnoop ksnoop
fi
