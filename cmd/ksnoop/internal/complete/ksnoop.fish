# Completion of ksnoop for fish.

function __ksnoop_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set word (string unescape -- "$word"; or string unescape -- "$word'"; or string unescape -- "$word\"") # one in open quotes
    set -l option (string match -r '^--[^=]+=' -- "$word")
    set -l name (string replace -- "$option" '' "$word")
    set -l answer ($words[1] __complete -- $words[2..-1] "$word" 2>/dev/null)
    switch "$answer[1]"
        case files
            string join \n -- "$option"(__fish_complete_path "$name")
        case directories
            string join \n -- "$option"(__fish_complete_directories "$name")
        case command
            __fish_complete_subcommand --commandline (string join ' ' -- (string escape -- $words[(math (contains -i -- -- $words) + 1)..-1]) "$word")
        case '*'
            string replace -r '\t$' '' -- $answer[2..-1]
    end
end

complete -c ksnoop -f -a '(__ksnoop_complete)'
