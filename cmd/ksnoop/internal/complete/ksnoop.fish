# Completion of ksnoop for fish.

function __ksnoop_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    switch "$word"
        case "'*" '"*'
            set word (string sub -s 2 -- $word)
        case '*'
            set word (string unescape -- "$word")
    end
    set -l answer ($words[1] __complete -- $words[2..-1] "$word" 2>/dev/null)
    switch "$answer[1]"
        case files
            __fish_complete_path "$word"
        case directories
            __fish_complete_directories "$word"
        case command
            __fish_complete_subcommand --commandline (string join ' ' -- (string escape -- $words[(math (contains -i -- -- $words) + 1)..-1]) "$word")
        case '*'
            string replace -r '\t$' '' -- $answer[2..-1]
    end
end

complete -c ksnoop -f -a '(__ksnoop_complete)'
