# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_sandbox_global_optspecs
    string join \n h/help V/version
end

function __fish_sandbox_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_sandbox_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_sandbox_using_subcommand
    set -l cmd (__fish_sandbox_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c sandbox -n "__fish_sandbox_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_needs_command" -s V -l version -d 'Print version'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "create" -d 'Make a sandbox of a directory'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "try" -d 'Run a command on a copy of the current directory, look, then decide'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "list" -d 'List sandboxes, newest first'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "ls" -d 'List sandboxes, newest first'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "enter" -d 'Open an interactive shell in a sandbox'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "run" -d 'Run a command in a sandbox'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "exec" -d 'Run a command in a sandbox'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "diff" -d 'Show what changed in a sandbox'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "promote" -d 'Apply a sandbox\'s changes to its source'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "discard" -d 'Delete a sandbox and the changes in it'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "rm" -d 'Delete a sandbox and the changes in it'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "sync" -d 'Bring the source\'s changes into a sandbox'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "fork" -d 'Make a sandbox of a sandbox'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "snapshot" -d 'Save a checkpoint inside a sandbox, or list them'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "rollback" -d 'Take a sandbox back to a checkpoint'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "pause" -d 'Freeze the processes of a sandbox'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "resume" -d 'Let the processes of a paused sandbox go on'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "info" -d 'Show everything about a sandbox'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "path" -d 'Print a host path to a sandbox\'s files, where there is one'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "history" -d 'Show every operation on every sandbox'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "gc" -d 'Clean up what nobody needs any more'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "serve" -d 'Serve sessions over HTTP'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "doctor" -d 'Show what this host offers, by trying it'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "version" -d 'Print the version'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "completions" -d 'Print a completion script for your shell'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "man" -d 'Print the manual page, or write one for every command'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "__complete-names"
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -s f -l from -d 'The directory to sandbox [default: the current one]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l backend -l copy -d 'How to copy; auto takes the best that works' -r -f -a "auto\t''
btrfs\t''
overlay\t''
copy\t''"
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l with-ports -d 'Forward a host-local TCP port to the same port inside; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l allow-host -d 'Let it reach a host through the proxy: HOST, HOST:PORT, *.DOMAIN:PORT; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l publish -d 'Let the host reach a server inside, such as 8080:3000; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l memory -d 'Limit memory, swap included, such as 512M (\'none\' lifts a stored limit)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l cpus -d 'Limit processors, such as 1.5' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l pids -d 'Limit processes and threads' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l size -d 'Limit the disk space of its changes, such as 2G' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l expose -d 'Show a host path inside that would be hidden, read-only unless it ends in \':rw\'' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l hide -d 'Hide a host path' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -s e -l env -d 'Set a variable inside' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l isolation -d 'Which outer wall: \'landlock\' knowingly accepts a weaker one, for hosts without user namespaces' -r -f -a "namespaces\t''
landlock\t''"
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -s y -l yes -d 'Sandbox \'/\', the home directory or the sandbox root itself, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l json -d 'Print JSON: {"name", "source", "backend", "created", "directory"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l isolated-network -d 'Give it a network of its own, with loopback only'
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l host-network -d 'Use the host\'s network, where isolation is stored or configured'
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -l clean-env -d 'Pass none of the caller\'s variables but the essential ones'
complete -c sandbox -n "__fish_sandbox_using_subcommand create" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l backend -l copy -d 'How to copy; auto takes the best that works' -r -f -a "auto\t''
btrfs\t''
overlay\t''
copy\t''"
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l with-ports -d 'Forward a host-local TCP port to the same port inside; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l allow-host -d 'Let it reach a host through the proxy: HOST, HOST:PORT, *.DOMAIN:PORT; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l publish -d 'Let the host reach a server inside, such as 8080:3000; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l memory -d 'Limit memory, swap included, such as 512M (\'none\' lifts a stored limit)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l cpus -d 'Limit processors, such as 1.5' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l pids -d 'Limit processes and threads' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l size -d 'Limit the disk space of its changes, such as 2G' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l expose -d 'Show a host path inside that would be hidden, read-only unless it ends in \':rw\'' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l hide -d 'Hide a host path' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -s e -l env -d 'Set a variable inside' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l isolation -d 'Which outer wall: \'landlock\' knowingly accepts a weaker one, for hosts without user namespaces' -r -f -a "namespaces\t''
landlock\t''"
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l promote -d 'Apply the changes when the command succeeds; keep the sandbox when it fails'
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l keep -d 'Keep the sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l discard -d 'Throw the sandbox away'
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -s y -l yes -d 'Sandbox \'/\', the home directory or the sandbox root itself, too; with --promote, do not ask'
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l isolated-network -d 'Give it a network of its own, with loopback only'
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l host-network -d 'Use the host\'s network, where isolation is stored or configured'
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l clean-env -d 'Pass none of the caller\'s variables but the essential ones'
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand list" -s a -l all -d 'Also those that were discarded'
complete -c sandbox -n "__fish_sandbox_using_subcommand list" -l json -d 'Print JSON: [{"name", "source", "backend", "created", "size", "changes", "status"}]'
complete -c sandbox -n "__fish_sandbox_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand ls" -s a -l all -d 'Also those that were discarded'
complete -c sandbox -n "__fish_sandbox_using_subcommand ls" -l json -d 'Print JSON: [{"name", "source", "backend", "created", "size", "changes", "status"}]'
complete -c sandbox -n "__fish_sandbox_using_subcommand ls" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -s c -l command -d 'Run this line in the shell instead of an interactive session' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l with-ports -d 'Forward a host-local TCP port to the same port inside; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l allow-host -d 'Let it reach a host through the proxy: HOST, HOST:PORT, *.DOMAIN:PORT; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l publish -d 'Let the host reach a server inside, such as 8080:3000; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l memory -d 'Limit memory, swap included, such as 512M (\'none\' lifts a stored limit)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l cpus -d 'Limit processors, such as 1.5' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l pids -d 'Limit processes and threads' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l size -d 'Limit the disk space of its changes, such as 2G' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l expose -d 'Show a host path inside that would be hidden, read-only unless it ends in \':rw\'' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l hide -d 'Hide a host path' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -s e -l env -d 'Set a variable inside' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l isolation -d 'Which outer wall: \'landlock\' knowingly accepts a weaker one, for hosts without user namespaces' -r -f -a "namespaces\t''
landlock\t''"
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l no-prompt -d 'Leave the shell\'s prompt as it is'
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l isolated-network -d 'Give it a network of its own, with loopback only'
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l host-network -d 'Use the host\'s network, where isolation is stored or configured'
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -l clean-env -d 'Pass none of the caller\'s variables but the essential ones'
complete -c sandbox -n "__fish_sandbox_using_subcommand enter" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l with-ports -d 'Forward a host-local TCP port to the same port inside; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l allow-host -d 'Let it reach a host through the proxy: HOST, HOST:PORT, *.DOMAIN:PORT; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l publish -d 'Let the host reach a server inside, such as 8080:3000; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l memory -d 'Limit memory, swap included, such as 512M (\'none\' lifts a stored limit)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l cpus -d 'Limit processors, such as 1.5' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l pids -d 'Limit processes and threads' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l size -d 'Limit the disk space of its changes, such as 2G' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l expose -d 'Show a host path inside that would be hidden, read-only unless it ends in \':rw\'' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l hide -d 'Hide a host path' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -s e -l env -d 'Set a variable inside' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l isolation -d 'Which outer wall: \'landlock\' knowingly accepts a weaker one, for hosts without user namespaces' -r -f -a "namespaces\t''
landlock\t''"
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l isolated-network -d 'Give it a network of its own, with loopback only'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l host-network -d 'Use the host\'s network, where isolation is stored or configured'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -l clean-env -d 'Pass none of the caller\'s variables but the essential ones'
complete -c sandbox -n "__fish_sandbox_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l with-ports -d 'Forward a host-local TCP port to the same port inside; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l allow-host -d 'Let it reach a host through the proxy: HOST, HOST:PORT, *.DOMAIN:PORT; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l publish -d 'Let the host reach a server inside, such as 8080:3000; implies --isolated-network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l memory -d 'Limit memory, swap included, such as 512M (\'none\' lifts a stored limit)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l cpus -d 'Limit processors, such as 1.5' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l pids -d 'Limit processes and threads' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l size -d 'Limit the disk space of its changes, such as 2G' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l expose -d 'Show a host path inside that would be hidden, read-only unless it ends in \':rw\'' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l hide -d 'Hide a host path' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -s e -l env -d 'Set a variable inside' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l isolation -d 'Which outer wall: \'landlock\' knowingly accepts a weaker one, for hosts without user namespaces' -r -f -a "namespaces\t''
landlock\t''"
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l isolated-network -d 'Give it a network of its own, with loopback only'
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l host-network -d 'Use the host\'s network, where isolation is stored or configured'
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l clean-env -d 'Pass none of the caller\'s variables but the essential ones'
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand diff" -l since -d 'Only what was modified since: 10m, 2h, 3d, 2026-01-31, \'2026-01-31 14:00\'' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand diff" -l stat -d 'Lines added and deleted per file'
complete -c sandbox -n "__fish_sandbox_using_subcommand diff" -l files -l name-only -d 'Changed paths with a letter: A added, M modified, D deleted, R renamed, P permissions, T type'
complete -c sandbox -n "__fish_sandbox_using_subcommand diff" -l json -d 'Print JSON: [{"path", "kind", "before", "after", "flags", …}]'
complete -c sandbox -n "__fish_sandbox_using_subcommand diff" -l exit-code -d 'Exit with status 1 when there are changes'
complete -c sandbox -n "__fish_sandbox_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l resolve -d 'Resolve one conflict: PATH=ours, theirs, merge or skip' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -s n -l dry-run -d 'Show the plan and stop'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -s i -l interactive -d 'Decide per file and per hunk'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l backup -d 'Also copy what is replaced or deleted to SOURCE.sandbox-backup-TIME, beside the source'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -s y -l yes -d 'Do not ask'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l undo -d 'Take the last promote of this source back'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l allow-git-control -d 'Apply git\'s control files (.git/config, .git/hooks) too'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l ours -d 'Resolve all other conflicts with the sandbox\'s version'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l theirs -d 'Resolve all other conflicts with the source\'s version'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l merge -d 'Resolve all other conflicts by merging; what overlaps stays a conflict'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l json -d 'Print JSON: the plan, and whether it was applied'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand discard" -s f -s y -l force -l yes -d 'Do not ask'
complete -c sandbox -n "__fish_sandbox_using_subcommand discard" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand rm" -s f -s y -l force -l yes -d 'Do not ask'
complete -c sandbox -n "__fish_sandbox_using_subcommand rm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand sync" -l direction -d 'Which way; sandbox-to-source is `sandbox promote`' -r -f -a "source-to-sandbox\t'The sandbox takes over the source\'s changes'
sandbox-to-source\t'The source takes over the sandbox\'s changes'"
complete -c sandbox -n "__fish_sandbox_using_subcommand sync" -s n -l dry-run -d 'Show what would be done and stop'
complete -c sandbox -n "__fish_sandbox_using_subcommand sync" -s y -l yes -d 'Do not ask (for sandbox-to-source)'
complete -c sandbox -n "__fish_sandbox_using_subcommand sync" -l json -d 'Print JSON: {"steps": [{"path", "action"}], "conflicts"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand sync" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand fork" -s n -l number -d 'How many to make' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand fork" -l json -d 'Print JSON: [{"name", "source", "backend"}]'
complete -c sandbox -n "__fish_sandbox_using_subcommand fork" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand snapshot" -s l -l list -d 'List the checkpoints'
complete -c sandbox -n "__fish_sandbox_using_subcommand snapshot" -l delete -d 'Delete the checkpoint LABEL'
complete -c sandbox -n "__fish_sandbox_using_subcommand snapshot" -l json -d 'Print JSON: {"label"}, or with --list [{"label", "created", "size"}]'
complete -c sandbox -n "__fish_sandbox_using_subcommand snapshot" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand rollback" -s y -l yes -d 'Do not ask'
complete -c sandbox -n "__fish_sandbox_using_subcommand rollback" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand pause" -l stop -d 'End the processes, keep the files'
complete -c sandbox -n "__fish_sandbox_using_subcommand pause" -l json -d 'Print JSON: {"name", "processes"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand pause" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand resume" -l json -d 'Print JSON: {"name", "processes"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand info" -l json -d 'Print JSON, with the same fields as the text'
complete -c sandbox -n "__fish_sandbox_using_subcommand info" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand path" -l layer -d 'Where its changes are kept, as the overlay file system writes them'
complete -c sandbox -n "__fish_sandbox_using_subcommand path" -l json -d 'Print JSON: {"path", "layer"}, either may be null'
complete -c sandbox -n "__fish_sandbox_using_subcommand path" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand history" -s n -l limit -d 'At most so many' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand history" -l json -d 'Print JSON, one record per line, as they are stored'
complete -c sandbox -n "__fish_sandbox_using_subcommand history" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand gc" -s n -l dry-run -d 'Show what would be deleted and stop'
complete -c sandbox -n "__fish_sandbox_using_subcommand gc" -l stale -d 'Also stale sandboxes without changes'
complete -c sandbox -n "__fish_sandbox_using_subcommand gc" -l json -d 'Print JSON: [{"what", "path", "size", "deleted"}]'
complete -c sandbox -n "__fish_sandbox_using_subcommand gc" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l config -d 'Read settings from this TOML file [SANDBOX_CONFIG]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l bind -d 'Where to listen [SANDBOX_BIND, default 127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l data -d 'Where to keep what is kept [SANDBOX_DATA]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l database -d 'The database: sqlite:, postgres: or mysql: URL; one with a password belongs in DATABASE_URL' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l objects -d 'Where objects are: file:DIR, s3:BUCKET or s3://BUCKET/PREFIX [SANDBOX_OBJECTS]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l runtime -d 'What sessions run on: local [SANDBOX_RUNTIME]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l user -d 'Whom sessions belong to on this machine, when the server is root [SANDBOX_USER, 59999:59999]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l node-id -d 'What this machine is called among those that share a database [SANDBOX_NODE_ID]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l advertise -d 'Where others that share the database reach this one, as http://host:port [SANDBOX_ADVERTISE, where it listens]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l log-level -d 'error, warn, info, debug or trace; also by part [LOG_LEVEL, info]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l drain-timeout -d 'How long executions may go on when the server is told to end [SANDBOX_DRAIN_TIMEOUT, 30s]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l requests-per-second -d 'How often a key may ask [SANDBOX_REQUESTS_PER_SECOND, 1000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l allowed-origin -d 'From where browsers may ask, such as https://app.example.com; again for more [SANDBOX_ALLOWED_ORIGINS, none]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l database-max-connections -d 'The most connections to the database [DATABASE_MAX_CONNECTIONS, 60]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l database-max-lifetime -d 'After this long a connection is replaced [DATABASE_MAX_LIFETIME, 1h]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l s3-endpoint -d 'The S3 server\'s URL; Amazon\'s own without it [S3_ENDPOINT]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l s3-bucket -d 'The bucket, as --objects s3:BUCKET [S3_BUCKET]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l s3-region -d 'The region that requests are signed for [AWS_REGION, us-east-1]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l s3-addressing -d 'Where requests name the bucket: path or host [S3_ADDRESSING, path]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l idle-timeout -d 'A session that nobody used for so long ends; or off [SANDBOX_IDLE_TIMEOUT, 30m]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l max-lifetime -d 'A session ends at this age, renewed or not; or off [SANDBOX_MAX_LIFETIME, 6h]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l expire -d 'Whether sessions end when they expire: on or off [SANDBOX_EXPIRE, on]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l reap-interval -d 'How often sessions are looked at for ending, a minute at most [SANDBOX_REAP_INTERVAL, 10s]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l retention -d 'How long a workspace is kept after its session\'s end; or off: for ever [SANDBOX_RETENTION, 24h]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l hibernate-after -d 'A session unused for so long gives its processes up until its next use; or off [SANDBOX_HIBERNATE_AFTER, 1m]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l strict-limits -d 'Refuse sessions whose template\'s limits cannot be enforced here: on or off [SANDBOX_STRICT_LIMITS, off]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l max-sessions -d 'The most sessions at a time [SANDBOX_MAX_SESSIONS, 20000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l overcommit -d 'How much memory and disk a new session may be promised, in percent of what is free [SANDBOX_OVERCOMMIT, 200]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l pool -d 'How many sessions of a template wait to be asked for; again for more, or none [SANDBOX_POOL, python-basic=2 and nodejs-basic=1]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l source-root -d 'A directory below which a session\'s source may be; again for more [SANDBOX_SOURCE_ROOTS, none]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l promote -d 'Whether what a session changed may be applied to its source: on or off [SANDBOX_PROMOTE, off]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l allowed-address -d 'An address that sessions may ask to reach though it is no public name, as 10.0.0.7:5432; again for more [SANDBOX_ALLOWED_ADDRESSES, none]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l check -d 'Tell what would be used and where each of it comes from, and start nothing'
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l json -d 'With --check, print JSON: {"settings": [{"setting", "value", "origin", "from"}], "warnings"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand doctor" -l json -d 'Print JSON: [{"feature", "works", "detail", "meaning", "fix", "required"}]'
complete -c sandbox -n "__fish_sandbox_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand version" -l json -d 'Print JSON: {"version"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand version" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand __complete-names" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "create" -d 'Make a sandbox of a directory'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "try" -d 'Run a command on a copy of the current directory, look, then decide'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "list" -d 'List sandboxes, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "enter" -d 'Open an interactive shell in a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "run" -d 'Run a command in a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "diff" -d 'Show what changed in a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "promote" -d 'Apply a sandbox\'s changes to its source'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "discard" -d 'Delete a sandbox and the changes in it'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "sync" -d 'Bring the source\'s changes into a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "fork" -d 'Make a sandbox of a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "snapshot" -d 'Save a checkpoint inside a sandbox, or list them'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "rollback" -d 'Take a sandbox back to a checkpoint'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "pause" -d 'Freeze the processes of a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "resume" -d 'Let the processes of a paused sandbox go on'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "info" -d 'Show everything about a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "path" -d 'Print a host path to a sandbox\'s files, where there is one'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "history" -d 'Show every operation on every sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "gc" -d 'Clean up what nobody needs any more'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "serve" -d 'Serve sessions over HTTP'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "doctor" -d 'Show what this host offers, by trying it'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "version" -d 'Print the version'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "completions" -d 'Print a completion script for your shell'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "man" -d 'Print the manual page, or write one for every command'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "__complete-names"
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run diff promote discard sync fork snapshot rollback pause resume info path history gc serve doctor version completions man __complete-names help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'

function __sandbox_needs_name
    set -l words (commandline -opc)
    test (count $words) -eq 2; and contains -- $words[2] enter run exec diff promote discard rm sync fork snapshot rollback pause resume info path history
    or begin
        test (count $words) -gt 2; and contains -- $words[2] discard rm
    end
end
complete -c sandbox -n __sandbox_needs_name -f -a '(sandbox __complete-names 2>/dev/null)'
