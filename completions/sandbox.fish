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
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "exec" -d 'Run a command in a sandbox, or code in a session of a server'
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
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "session" -d 'Make, look at and end sessions of a server'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "execution" -d 'Look at what was run in sessions, and end what runs'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "file" -d 'Put files into a session\'s workspace, and get them out'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "template" -d 'Make, look at and change what sessions are made from'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "key" -d 'Make, list and revoke a server\'s API keys'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "node" -d 'Look at the machines that sessions run on, and take one out of service'
complete -c sandbox -n "__fish_sandbox_needs_command" -f -a "health" -d 'Show how a server and its parts are'
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
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l discard -d 'Discard the sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -s y -l yes -d 'Sandbox \'/\', the home directory or the sandbox root itself, too; with --promote, do not ask'
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l isolated-network -d 'Give it a network of its own, with loopback only'
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l host-network -d 'Use the host\'s network, where isolation is stored or configured'
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -l clean-env -d 'Pass none of the caller\'s variables but the essential ones'
complete -c sandbox -n "__fish_sandbox_using_subcommand try" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand list" -s a -l all -d 'Also those that were discarded'
complete -c sandbox -n "__fish_sandbox_using_subcommand list" -l json -d 'Print JSON: [{"name", "source", "backend", "created", "size", "changes", "status", "restorable_until"}]'
complete -c sandbox -n "__fish_sandbox_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand ls" -s a -l all -d 'Also those that were discarded'
complete -c sandbox -n "__fish_sandbox_using_subcommand ls" -l json -d 'Print JSON: [{"name", "source", "backend", "created", "size", "changes", "status", "restorable_until"}]'
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
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -s l -l language -d 'What it is written in [shell, or what the name of FILE says]' -r -f -a "python\t''
javascript\t''
shell\t''"
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -s f -l file -d 'Read the code from this file' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -s e -l event -d 'What it is given, as JSON; @FILE reads it from there, @- from stdin' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -s t -l timeout -d 'How long it may take, 1 to 3600 seconds [30]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l idempotency-key -d 'What makes this safe to send again; one is made up without it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l retry -d 'Run it again when it crashes, three times at most'
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -s d -l detach -d 'Do not wait for it: print the execution\'s identifier'
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l json -d 'Print JSON: the result, or with --detach {"execution_id", "status", "submitted_at"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand exec" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
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
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l redo -d 'Apply again what the last --undo took back'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l force -d 'With --undo or --redo: leave paths that changed since as they are, and do the others'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l allow-git-control -d 'Apply what steers git (.git/config, .git/hooks) and new, deleted or broken repositories, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l ours -d 'Resolve all other conflicts with the sandbox\'s version'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l theirs -d 'Resolve all other conflicts with the source\'s version'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l merge -d 'Resolve all other conflicts by merging; what overlaps stays a conflict'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -l json -d 'Print JSON: the plan, and whether it was applied'
complete -c sandbox -n "__fish_sandbox_using_subcommand promote" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand discard" -l as -d 'With --undo: restore it under this name' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand discard" -s f -s y -l force -l yes -d 'Do not ask'
complete -c sandbox -n "__fish_sandbox_using_subcommand discard" -l purge -d 'Delete at once; it cannot be restored'
complete -c sandbox -n "__fish_sandbox_using_subcommand discard" -l undo -d 'Restore discarded sandboxes, of one name the latest; without a NAME, list them'
complete -c sandbox -n "__fish_sandbox_using_subcommand discard" -l json -d 'With --undo: print JSON: [{"name", "source", "backend", "discarded", "until", "size"}], or the sandboxes restored as `list` prints them'
complete -c sandbox -n "__fish_sandbox_using_subcommand discard" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand rm" -l as -d 'With --undo: restore it under this name' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand rm" -s f -s y -l force -l yes -d 'Do not ask'
complete -c sandbox -n "__fish_sandbox_using_subcommand rm" -l purge -d 'Delete at once; it cannot be restored'
complete -c sandbox -n "__fish_sandbox_using_subcommand rm" -l undo -d 'Restore discarded sandboxes, of one name the latest; without a NAME, list them'
complete -c sandbox -n "__fish_sandbox_using_subcommand rm" -l json -d 'With --undo: print JSON: [{"name", "source", "backend", "discarded", "until", "size"}], or the sandboxes restored as `list` prints them'
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
complete -c sandbox -n "__fish_sandbox_using_subcommand snapshot" -l json -d 'Print JSON: {"label"}, or with --list [{"label", "created", "size", "home"}]'
complete -c sandbox -n "__fish_sandbox_using_subcommand snapshot" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand rollback" -l home -d 'Only the home; without LABEL, empty it'
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
complete -c sandbox -n "__fish_sandbox_using_subcommand gc" -l discarded -d 'Also discarded sandboxes that could still be restored'
complete -c sandbox -n "__fish_sandbox_using_subcommand gc" -l json -d 'Print JSON: [{"what", "path", "size", "deleted"}]'
complete -c sandbox -n "__fish_sandbox_using_subcommand gc" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l config -d 'Read settings from this TOML file [SANDBOX_CONFIG]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l bind -d 'Where to listen [SANDBOX_BIND, default 127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l data -d 'Where to keep what is kept [SANDBOX_DATA]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l database -d 'The database: sqlite:, postgres: or mysql: URL; one with a password belongs in DATABASE_URL' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l objects -d 'Where objects are: file:DIR, s3:BUCKET or s3://BUCKET/PREFIX [SANDBOX_OBJECTS]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l runtime -d 'What sessions run on: local [SANDBOX_RUNTIME]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l user -d 'The user on this machine for sessions that have none of their own, when the server is root [SANDBOX_USER, the second of --session-uids]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l session-uids -d 'The users that sessions have, each its own, when the server is root: FIRST-LAST, chosen or shared [SANDBOX_SESSION_UIDS, chosen]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l node-id -d 'What this machine is called among those that share a database [SANDBOX_NODE_ID]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l advertise -d 'Where others that share the database reach this one, as http://host:port [SANDBOX_ADVERTISE, where it listens]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l log-level -d 'error, warn, info, debug or trace; also by part [LOG_LEVEL, info]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l drain-timeout -d 'How long executions may go on when the server is told to end [SANDBOX_DRAIN_TIMEOUT, 30s]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l requests-per-second -d 'How often a key may ask [SANDBOX_REQUESTS_PER_SECOND, 1000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l max-connections -d 'The most connections at a time; others wait [SANDBOX_MAX_CONNECTIONS, 10000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l trusted-proxy -d 'A proxy that is believed about the client\'s address, as an address or CIDR block; again for more [SANDBOX_TRUSTED_PROXIES, none]' -r
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
complete -c sandbox -n "__fish_sandbox_using_subcommand serve" -l record-retention -d 'How long a session that ended and its executions are remembered; or off: for ever [SANDBOX_RECORD_RETENTION, off]' -r
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
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -f -a "create" -d 'Make a session'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -f -a "list" -d 'List sessions, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -f -a "ls" -d 'List sessions, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -f -a "get" -d 'Show everything about a session'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -f -a "delete" -d 'End sessions, with everything that runs in them'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -f -a "rm" -d 'End sessions, with everything that runs in them'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -f -a "renew" -d 'Let a session live for its time from now on'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -f -a "pause" -d 'Stop everything in a session where it is'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -f -a "resume" -d 'Let a session that was paused go on'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -f -a "fork" -d 'Make a session like another one, whose workspace starts as a copy of its'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -f -a "changes" -d 'Show what a session\'s workspace has that it did not start with'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -f -a "events" -d 'Show what happens to a session, as it happens'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and not __fish_seen_subcommand_from create list ls get delete rm renew pause resume fork changes events help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l timeout -d 'How long it lives, 60 to 3600 seconds [300]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l mode -d 'Whether the workspace is reattached by the next session of the same agent' -r -f -a "ephemeral\t'It ends when it is idle or expires'
persistent\t'The next session of the same agent finds its workspace'"
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l agent -d 'Whose it is; a persistent one needs it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -s e -l env -d 'Set a variable for its code; without a value, to the value it has here' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l env-file -d 'Set the variables in a file, a NAME=VALUE on each line' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l allow -d 'Let its code reach this host and port; implies --network' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l source -d 'Start from a copy of this directory of the server\'s, below a root that its configuration names' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l file -d 'Start with this text file of yours at PATH in the workspace; again for more' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l pool -d 'Whether it is to come from the warm pool' -r -f -a "prefer\t'If there is one'
require\t'Or not at all'
never\t'Not even if there is one'"
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l idempotency-key -d 'What makes this safe to send again; one is made up without it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l cpu -d 'Processors, 0.5 to 4' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l memory -d 'Memory, 256Mi to 8Gi' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l disk -d 'Disk, 1Gi to 50Gi' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l max-processes -d 'Processes and threads at once, 32 to 1024' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l network -d 'Let its code reach the network: every public address, where no --allow says otherwise'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l json -d 'Print JSON: the session, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from list" -l status -d 'Only those that are creating, running, paused, completed, failed, timeout or terminated' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from list" -l template -d 'Only those made from this template' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from list" -l agent -d 'Only this agent\'s' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from list" -l limit -d 'How many, 1 to 200 [50]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from list" -l offset -d 'How many to leave out first' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from list" -l cursor -d 'Where the page before this one ended, as it said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from list" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from list" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from list" -s a -l all -d 'All of them, page after page'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from list" -l json -d 'Print JSON: {"sessions": [session], "total", "next_cursor"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from list" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from ls" -l status -d 'Only those that are creating, running, paused, completed, failed, timeout or terminated' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from ls" -l template -d 'Only those made from this template' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from ls" -l agent -d 'Only this agent\'s' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from ls" -l limit -d 'How many, 1 to 200 [50]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from ls" -l offset -d 'How many to leave out first' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from ls" -l cursor -d 'Where the page before this one ended, as it said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from ls" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from ls" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from ls" -s a -l all -d 'All of them, page after page'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from ls" -l json -d 'Print JSON: {"sessions": [session], "total", "next_cursor"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from ls" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from get" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from get" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from get" -l json -d 'Print JSON: the session, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from get" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from get" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from delete" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from delete" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON: {"message"} for each, on a line'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from delete" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from rm" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from rm" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from rm" -l json -d 'Print JSON: {"message"} for each, on a line'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from rm" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from rm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from renew" -l timeout -d 'How long, 60 to 3600 seconds; as before without it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from renew" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from renew" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from renew" -l json -d 'Print JSON: the session, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from renew" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from renew" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from pause" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from pause" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from pause" -l json -d 'Print JSON: the session, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from pause" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from pause" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from resume" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from resume" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from resume" -l json -d 'Print JSON: the session, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from resume" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from fork" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from fork" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from fork" -l json -d 'Print JSON: the new session, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from fork" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from fork" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from changes" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from changes" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from changes" -l files -l name-only -d 'Changed paths with a letter: A added, M modified, D deleted, R renamed, P permissions, T type'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from changes" -l json -d 'Print JSON: {"changes": [change], "total", "diff", "not_in_diff", "truncated"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from changes" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from changes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from events" -l after -d 'Only those after the event of this number' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from events" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from events" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from events" -l json -d 'Print JSON, a line for each: {"id", "event", "at", "detail"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from events" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from events" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from help" -f -a "create" -d 'Make a session'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from help" -f -a "list" -d 'List sessions, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from help" -f -a "get" -d 'Show everything about a session'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from help" -f -a "delete" -d 'End sessions, with everything that runs in them'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from help" -f -a "renew" -d 'Let a session live for its time from now on'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from help" -f -a "pause" -d 'Stop everything in a session where it is'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from help" -f -a "resume" -d 'Let a session that was paused go on'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from help" -f -a "fork" -d 'Make a session like another one, whose workspace starts as a copy of its'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from help" -f -a "changes" -d 'Show what a session\'s workspace has that it did not start with'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from help" -f -a "events" -d 'Show what happens to a session, as it happens'
complete -c sandbox -n "__fish_sandbox_using_subcommand session; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and not __fish_seen_subcommand_from list ls get status result cancel help" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and not __fish_seen_subcommand_from list ls get status result cancel help" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and not __fish_seen_subcommand_from list ls get status result cancel help" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and not __fish_seen_subcommand_from list ls get status result cancel help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and not __fish_seen_subcommand_from list ls get status result cancel help" -f -a "list" -d 'List a session\'s executions, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and not __fish_seen_subcommand_from list ls get status result cancel help" -f -a "ls" -d 'List a session\'s executions, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and not __fish_seen_subcommand_from list ls get status result cancel help" -f -a "get" -d 'Show everything about an execution, its code and its event'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and not __fish_seen_subcommand_from list ls get status result cancel help" -f -a "status" -d 'Show where an execution is in its life'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and not __fish_seen_subcommand_from list ls get status result cancel help" -f -a "result" -d 'Show what became of an execution, as if it had just been run'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and not __fish_seen_subcommand_from list ls get status result cancel help" -f -a "cancel" -d 'End an execution, with everything that it started'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and not __fish_seen_subcommand_from list ls get status result cancel help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from list" -l status -d 'Only those that are pending, running, completed, failed, timeout, crashed or cancelled' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from list" -l limit -d 'How many, 1 to 200 [50]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from list" -l offset -d 'How many to leave out first' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from list" -l cursor -d 'Where the page before this one ended, as it said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from list" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from list" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from list" -s a -l all -d 'All of them, page after page'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from list" -l json -d 'Print JSON: {"executions": [status], "total", "next_cursor"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from list" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from ls" -l status -d 'Only those that are pending, running, completed, failed, timeout, crashed or cancelled' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from ls" -l limit -d 'How many, 1 to 200 [50]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from ls" -l offset -d 'How many to leave out first' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from ls" -l cursor -d 'Where the page before this one ended, as it said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from ls" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from ls" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from ls" -s a -l all -d 'All of them, page after page'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from ls" -l json -d 'Print JSON: {"executions": [status], "total", "next_cursor"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from ls" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from get" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from get" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from get" -l json -d 'Print JSON: the execution, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from get" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from get" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from status" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from status" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from status" -l json -d 'Print JSON: the status, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from status" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from result" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from result" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from result" -s w -l wait -d 'Wait until it is over'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from result" -l json -d 'Print JSON: the result, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from result" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from result" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from cancel" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from cancel" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from cancel" -l json -d 'Print JSON: the status, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from cancel" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from cancel" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from help" -f -a "list" -d 'List a session\'s executions, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from help" -f -a "get" -d 'Show everything about an execution, its code and its event'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from help" -f -a "status" -d 'Show where an execution is in its life'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from help" -f -a "result" -d 'Show what became of an execution, as if it had just been run'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from help" -f -a "cancel" -d 'End an execution, with everything that it started'
complete -c sandbox -n "__fish_sandbox_using_subcommand execution; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and not __fish_seen_subcommand_from put get list ls remove rm archive help" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and not __fish_seen_subcommand_from put get list ls remove rm archive help" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and not __fish_seen_subcommand_from put get list ls remove rm archive help" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and not __fish_seen_subcommand_from put get list ls remove rm archive help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and not __fish_seen_subcommand_from put get list ls remove rm archive help" -f -a "put" -d 'Put a file into a session\'s workspace'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and not __fish_seen_subcommand_from put get list ls remove rm archive help" -f -a "get" -d 'Get a file from a session\'s workspace'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and not __fish_seen_subcommand_from put get list ls remove rm archive help" -f -a "list" -d 'List a directory of a session\'s workspace, by name'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and not __fish_seen_subcommand_from put get list ls remove rm archive help" -f -a "ls" -d 'List a directory of a session\'s workspace, by name'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and not __fish_seen_subcommand_from put get list ls remove rm archive help" -f -a "remove" -d 'Remove files from a session\'s workspace, and directories with all that is in them'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and not __fish_seen_subcommand_from put get list ls remove rm archive help" -f -a "rm" -d 'Remove files from a session\'s workspace, and directories with all that is in them'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and not __fish_seen_subcommand_from put get list ls remove rm archive help" -f -a "archive" -d 'Get a directory of a session\'s workspace as a tar archive'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and not __fish_seen_subcommand_from put get list ls remove rm archive help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from put" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from put" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from put" -l json -d 'Print JSON: {"session_id", "path", "size"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from put" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from put" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from get" -l range -d 'Only these bytes: 0-1023, 1024- (from there on) or -100 (the last hundred)' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from get" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from get" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from get" -l json -d 'Print JSON: {"session_id", "path", "size", "file"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from get" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from get" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from list" -l limit -d 'How many entries, 1 to 1000 [200]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from list" -l cursor -d 'Where the page before this one ended, as it said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from list" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from list" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from list" -s a -l all -d 'All of them, page after page'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from list" -l json -d 'Print JSON: {"path", "files": [{"name", "kind", "size", "modified_at"}], "next_cursor"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from list" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from ls" -l limit -d 'How many entries, 1 to 1000 [200]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from ls" -l cursor -d 'Where the page before this one ended, as it said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from ls" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from ls" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from ls" -s a -l all -d 'All of them, page after page'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from ls" -l json -d 'Print JSON: {"path", "files": [{"name", "kind", "size", "modified_at"}], "next_cursor"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from ls" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from remove" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from remove" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from remove" -l json -d 'Print JSON: {"session_id", "path"} for each, on a line'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from remove" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from rm" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from rm" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from rm" -l json -d 'Print JSON: {"session_id", "path"} for each, on a line'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from rm" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from rm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from archive" -l path -d 'The directory in the workspace [all of it]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from archive" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from archive" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from archive" -l json -d 'Print JSON: {"session_id", "path", "size", "file"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from archive" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from archive" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from help" -f -a "put" -d 'Put a file into a session\'s workspace'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from help" -f -a "get" -d 'Get a file from a session\'s workspace'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from help" -f -a "list" -d 'List a directory of a session\'s workspace, by name'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Remove files from a session\'s workspace, and directories with all that is in them'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from help" -f -a "archive" -d 'Get a directory of a session\'s workspace as a tar archive'
complete -c sandbox -n "__fish_sandbox_using_subcommand file; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and not __fish_seen_subcommand_from create list ls get update delete rm seed help" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and not __fish_seen_subcommand_from create list ls get update delete rm seed help" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and not __fish_seen_subcommand_from create list ls get update delete rm seed help" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and not __fish_seen_subcommand_from create list ls get update delete rm seed help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and not __fish_seen_subcommand_from create list ls get update delete rm seed help" -f -a "create" -d 'Make a template'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and not __fish_seen_subcommand_from create list ls get update delete rm seed help" -f -a "list" -d 'List templates, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and not __fish_seen_subcommand_from create list ls get update delete rm seed help" -f -a "ls" -d 'List templates, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and not __fish_seen_subcommand_from create list ls get update delete rm seed help" -f -a "get" -d 'Show everything about a template'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and not __fish_seen_subcommand_from create list ls get update delete rm seed help" -f -a "update" -d 'Change a template'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and not __fish_seen_subcommand_from create list ls get update delete rm seed help" -f -a "delete" -d 'Delete a template that no live session uses'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and not __fish_seen_subcommand_from create list ls get update delete rm seed help" -f -a "rm" -d 'Delete a template that no live session uses'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and not __fish_seen_subcommand_from create list ls get update delete rm seed help" -f -a "seed" -d 'Make the templates that every server starts with, where they are missing'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and not __fish_seen_subcommand_from create list ls get update delete rm seed help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l name -d 'What people call it; its identifier without it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l image -d '\'host\', a directory of the server\'s with an unpacked root, or an image reference' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l base-image -d 'What the image was built from' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l runtime -d 'What its sessions run on: local, docker or kubernetes [local]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l package -d 'What must be there when a session starts, such as numpy or numpy==2.1; again for more' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l user -d 'As whom its code runs; only 1000:1000 is allowed' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l cpu -d 'Processors, 0.5 to 4' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l memory -d 'Memory, 256Mi to 8Gi' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l disk -d 'Disk, 1Gi to 50Gi' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l max-processes -d 'Processes and threads at once, 32 to 1024' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l privileged -d 'Ask for privileges; servers refuse that'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l inactive -d 'Let no sessions be made from it yet'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l json -d 'Print JSON: the template, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from list" -l limit -d 'How many, 1 to 200 [50]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from list" -l offset -d 'How many to leave out first' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from list" -l cursor -d 'Where the page before this one ended, as it said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from list" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from list" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from list" -l include-inactive -d 'Those that sessions cannot be made from, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from list" -s a -l all -d 'All of them, page after page'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from list" -l json -d 'Print JSON: {"templates": [template], "total", "next_cursor"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from list" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from ls" -l limit -d 'How many, 1 to 200 [50]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from ls" -l offset -d 'How many to leave out first' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from ls" -l cursor -d 'Where the page before this one ended, as it said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from ls" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from ls" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from ls" -l include-inactive -d 'Those that sessions cannot be made from, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from ls" -s a -l all -d 'All of them, page after page'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from ls" -l json -d 'Print JSON: {"templates": [template], "total", "next_cursor"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from ls" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from get" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from get" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from get" -l json -d 'Print JSON: the template, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from get" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from get" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l name -d 'What people call it' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l image -d '\'host\', a directory of the server\'s with an unpacked root, or an image reference' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l package -d 'What must be there when a session starts, instead of what was named before; again for more' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l user -d 'As whom its code runs; only 1000:1000 is allowed' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l cpu -d 'Processors, 0.5 to 4' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l memory -d 'Memory, 256Mi to 8Gi' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l disk -d 'Disk, 1Gi to 50Gi' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l max-processes -d 'Processes and threads at once, 32 to 1024' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l no-packages -d 'Nothing must be there when a session starts'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l privileged -d 'Ask for privileges; servers refuse that'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l active -d 'Let sessions be made from it'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l inactive -d 'Let no more sessions be made from it'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l json -d 'Print JSON: the template, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from update" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from delete" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from delete" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON: {"id"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from delete" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from rm" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from rm" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from rm" -l json -d 'Print JSON: {"id"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from rm" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from rm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from seed" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from seed" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from seed" -l json -d 'Print JSON: {"created": [id], "existing": [id]}'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from seed" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from seed" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from help" -f -a "create" -d 'Make a template'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from help" -f -a "list" -d 'List templates, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from help" -f -a "get" -d 'Show everything about a template'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from help" -f -a "update" -d 'Change a template'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from help" -f -a "delete" -d 'Delete a template that no live session uses'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from help" -f -a "seed" -d 'Make the templates that every server starts with, where they are missing'
complete -c sandbox -n "__fish_sandbox_using_subcommand template; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and not __fish_seen_subcommand_from create list ls revoke help" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and not __fish_seen_subcommand_from create list ls revoke help" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and not __fish_seen_subcommand_from create list ls revoke help" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and not __fish_seen_subcommand_from create list ls revoke help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and not __fish_seen_subcommand_from create list ls revoke help" -f -a "create" -d 'Make a key'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and not __fish_seen_subcommand_from create list ls revoke help" -f -a "list" -d 'List keys, newest first, revoked ones too'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and not __fish_seen_subcommand_from create list ls revoke help" -f -a "ls" -d 'List keys, newest first, revoked ones too'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and not __fish_seen_subcommand_from create list ls revoke help" -f -a "revoke" -d 'Make a key open nothing from now on'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and not __fish_seen_subcommand_from create list ls revoke help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from create" -l scope -d 'What it allows; each allows what the one before it does' -r -f -a "read\t'To look'
operate\t'To make, use and end sessions'
admin\t'Everything'"
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from create" -s o -l output -d 'Write the key to this new file, which only you can read, and not to stdout' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from create" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from create" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from create" -l json -d 'Print JSON: {"key_id", "name", "scope", "created_at", "revoked_at", "secret"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from create" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from list" -l limit -d 'How many, 1 to 200 [50]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from list" -l offset -d 'How many to leave out first' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from list" -l cursor -d 'Where the page before this one ended, as it said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from list" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from list" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from list" -s a -l all -d 'All of them, page after page'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from list" -l json -d 'Print JSON: {"keys": [{"key_id", "name", "scope", "created_at", "revoked_at"}], "total", "next_cursor"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from list" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from ls" -l limit -d 'How many, 1 to 200 [50]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from ls" -l offset -d 'How many to leave out first' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from ls" -l cursor -d 'Where the page before this one ended, as it said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from ls" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from ls" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from ls" -s a -l all -d 'All of them, page after page'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from ls" -l json -d 'Print JSON: {"keys": [{"key_id", "name", "scope", "created_at", "revoked_at"}], "total", "next_cursor"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from ls" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from revoke" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from revoke" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from revoke" -l json -d 'Print JSON: {"key_id"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from revoke" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from revoke" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from help" -f -a "create" -d 'Make a key'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from help" -f -a "list" -d 'List keys, newest first, revoked ones too'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from help" -f -a "revoke" -d 'Make a key open nothing from now on'
complete -c sandbox -n "__fish_sandbox_using_subcommand key; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and not __fish_seen_subcommand_from list ls drain help" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and not __fish_seen_subcommand_from list ls drain help" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and not __fish_seen_subcommand_from list ls drain help" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and not __fish_seen_subcommand_from list ls drain help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and not __fish_seen_subcommand_from list ls drain help" -f -a "list" -d 'List nodes, by name'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and not __fish_seen_subcommand_from list ls drain help" -f -a "ls" -d 'List nodes, by name'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and not __fish_seen_subcommand_from list ls drain help" -f -a "drain" -d 'Let a node take no new sessions; those it has go on'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and not __fish_seen_subcommand_from list ls drain help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from list" -l limit -d 'How many, 1 to 200 [50]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from list" -l offset -d 'How many to leave out first' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from list" -l cursor -d 'Where the page before this one ended, as it said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from list" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from list" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from list" -s a -l all -d 'All of them, page after page'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from list" -l json -d 'Print JSON: {"nodes": [node], "total", "next_cursor"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from list" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from ls" -l limit -d 'How many, 1 to 200 [50]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from ls" -l offset -d 'How many to leave out first' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from ls" -l cursor -d 'Where the page before this one ended, as it said' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from ls" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from ls" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from ls" -s a -l all -d 'All of them, page after page'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from ls" -l json -d 'Print JSON: {"nodes": [node], "total", "next_cursor"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from ls" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from drain" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from drain" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from drain" -l json -d 'Print JSON: the node, as the API has it'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from drain" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from drain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from help" -f -a "list" -d 'List nodes, by name'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from help" -f -a "drain" -d 'Let a node take no new sessions; those it has go on'
complete -c sandbox -n "__fish_sandbox_using_subcommand node; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand health" -l server -d 'The server\'s address [SANDBOX_SERVER, http://127.0.0.1:8000]' -r
complete -c sandbox -n "__fish_sandbox_using_subcommand health" -l key-file -d 'The file that holds the API key [SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY]' -r -F
complete -c sandbox -n "__fish_sandbox_using_subcommand health" -l ready -d 'Only whether it takes requests'
complete -c sandbox -n "__fish_sandbox_using_subcommand health" -l metrics -d 'What it measured, as Prometheus reads it'
complete -c sandbox -n "__fish_sandbox_using_subcommand health" -l json -d 'Print JSON: {"status", "version", "uptime_seconds", "components"}, or with --ready {"ready"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand health" -l allow-plain-http -d 'Send the API key over plain http to another machine, too'
complete -c sandbox -n "__fish_sandbox_using_subcommand health" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand doctor" -l json -d 'Print JSON: [{"feature", "works", "detail", "meaning", "fix", "required"}]'
complete -c sandbox -n "__fish_sandbox_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand version" -l json -d 'Print JSON: {"version"}'
complete -c sandbox -n "__fish_sandbox_using_subcommand version" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sandbox -n "__fish_sandbox_using_subcommand __complete-names" -l discarded -d 'Those of discarded sandboxes that can be restored'
complete -c sandbox -n "__fish_sandbox_using_subcommand __complete-names" -s h -l help -d 'Print help'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "create" -d 'Make a sandbox of a directory'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "try" -d 'Run a command on a copy of the current directory, look, then decide'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "list" -d 'List sandboxes, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "enter" -d 'Open an interactive shell in a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "run" -d 'Run a command in a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "exec" -d 'Run a command in a sandbox, or code in a session of a server'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "diff" -d 'Show what changed in a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "promote" -d 'Apply a sandbox\'s changes to its source'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "discard" -d 'Delete a sandbox and the changes in it'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "sync" -d 'Bring the source\'s changes into a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "fork" -d 'Make a sandbox of a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "snapshot" -d 'Save a checkpoint inside a sandbox, or list them'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "rollback" -d 'Take a sandbox back to a checkpoint'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "pause" -d 'Freeze the processes of a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "resume" -d 'Let the processes of a paused sandbox go on'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "info" -d 'Show everything about a sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "path" -d 'Print a host path to a sandbox\'s files, where there is one'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "history" -d 'Show every operation on every sandbox'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "gc" -d 'Clean up what nobody needs any more'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "serve" -d 'Serve sessions over HTTP'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "session" -d 'Make, look at and end sessions of a server'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "execution" -d 'Look at what was run in sessions, and end what runs'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "file" -d 'Put files into a session\'s workspace, and get them out'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "template" -d 'Make, look at and change what sessions are made from'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "key" -d 'Make, list and revoke a server\'s API keys'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "node" -d 'Look at the machines that sessions run on, and take one out of service'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "health" -d 'Show how a server and its parts are'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "doctor" -d 'Show what this host offers, by trying it'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "version" -d 'Print the version'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "completions" -d 'Print a completion script for your shell'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "man" -d 'Print the manual page, or write one for every command'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "__complete-names"
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and not __fish_seen_subcommand_from create try list enter run exec diff promote discard sync fork snapshot rollback pause resume info path history gc serve session execution file template key node health doctor version completions man __complete-names help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from session" -f -a "create" -d 'Make a session'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from session" -f -a "list" -d 'List sessions, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from session" -f -a "get" -d 'Show everything about a session'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from session" -f -a "delete" -d 'End sessions, with everything that runs in them'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from session" -f -a "renew" -d 'Let a session live for its time from now on'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from session" -f -a "pause" -d 'Stop everything in a session where it is'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from session" -f -a "resume" -d 'Let a session that was paused go on'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from session" -f -a "fork" -d 'Make a session like another one, whose workspace starts as a copy of its'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from session" -f -a "changes" -d 'Show what a session\'s workspace has that it did not start with'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from session" -f -a "events" -d 'Show what happens to a session, as it happens'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from execution" -f -a "list" -d 'List a session\'s executions, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from execution" -f -a "get" -d 'Show everything about an execution, its code and its event'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from execution" -f -a "status" -d 'Show where an execution is in its life'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from execution" -f -a "result" -d 'Show what became of an execution, as if it had just been run'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from execution" -f -a "cancel" -d 'End an execution, with everything that it started'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from file" -f -a "put" -d 'Put a file into a session\'s workspace'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from file" -f -a "get" -d 'Get a file from a session\'s workspace'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from file" -f -a "list" -d 'List a directory of a session\'s workspace, by name'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from file" -f -a "remove" -d 'Remove files from a session\'s workspace, and directories with all that is in them'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from file" -f -a "archive" -d 'Get a directory of a session\'s workspace as a tar archive'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from template" -f -a "create" -d 'Make a template'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from template" -f -a "list" -d 'List templates, newest first'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from template" -f -a "get" -d 'Show everything about a template'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from template" -f -a "update" -d 'Change a template'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from template" -f -a "delete" -d 'Delete a template that no live session uses'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from template" -f -a "seed" -d 'Make the templates that every server starts with, where they are missing'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from key" -f -a "create" -d 'Make a key'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from key" -f -a "list" -d 'List keys, newest first, revoked ones too'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from key" -f -a "revoke" -d 'Make a key open nothing from now on'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from node" -f -a "list" -d 'List nodes, by name'
complete -c sandbox -n "__fish_sandbox_using_subcommand help; and __fish_seen_subcommand_from node" -f -a "drain" -d 'Let a node take no new sessions; those it has go on'

function __sandbox_needs_name
    set -l words (commandline -opc)
    test (count $words) -eq 2; and contains -- $words[2] enter run exec diff promote discard rm sync fork snapshot rollback pause resume info path history
    or begin
        test (count $words) -gt 2; and contains -- $words[2] discard rm
    end
end
function __sandbox_names
    set -l words (commandline -opc)
    if contains -- $words[2] discard rm; and contains -- --undo $words
        sandbox __complete-names --discarded 2>/dev/null
    else
        sandbox __complete-names 2>/dev/null
    end
end
complete -c sandbox -n __sandbox_needs_name -f -a '(__sandbox_names)'
