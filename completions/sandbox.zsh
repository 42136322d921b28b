#compdef sandbox

autoload -U is-at-least

_sandbox_names() {
    local -a names which
    [[ ${words[(I)--undo]} -gt 0 && ${words[1]} == (discard|rm) ]] && which=(--discarded)
    names=( ${(f)"$(sandbox __complete-names $which 2>/dev/null)"} )
    _describe -t names sandbox names
}

_sandbox_words() {
    if (( CURRENT == 1 )); then _sandbox_names; else shift words; (( CURRENT-- )); _normal; fi
}

_sandbox() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
":: :_sandbox_commands" \
"*::: :->sandbox" \
&& ret=0
    case $state in
    (sandbox)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
'-f+[The directory to sandbox \[default\: the current one\]]:DIR:_files' \
'--from=[The directory to sandbox \[default\: the current one\]]:DIR:_files' \
'--backend=[How to copy; auto takes the best that works]:BACKEND:(auto btrfs overlay copy)' \
'--copy=[How to copy; auto takes the best that works]:BACKEND:(auto btrfs overlay copy)' \
'*--with-ports=[Forward a host-local TCP port to the same port inside; implies --isolated-network]:PORT:_default' \
'*--allow-host=[Let it reach a host through the proxy\: HOST, HOST\:PORT, *.DOMAIN\:PORT; implies --isolated-network]:HOST:_default' \
'*--publish=[Let the host reach a server inside, such as 8080\:3000; implies --isolated-network]:PORTS:_default' \
'--memory=[Limit memory, swap included, such as 512M ('\''none'\'' lifts a stored limit)]:SIZE:_default' \
'--cpus=[Limit processors, such as 1.5]:NUMBER:_default' \
'--pids=[Limit processes and threads]:NUMBER:_default' \
'--size=[Limit the disk space of its changes, such as 2G]:SIZE:_default' \
'*--expose=[Show a host path inside that would be hidden, read-only unless it ends in '\''\:rw'\'']:PATH:_files' \
'*--hide=[Hide a host path]:PATH:_files' \
'*-e+[Set a variable inside]:NAME=VALUE:_default' \
'*--env=[Set a variable inside]:NAME=VALUE:_default' \
'--isolation=[Which outer wall\: '\''landlock'\'' knowingly accepts a weaker one, for hosts without user namespaces]:WALL:(namespaces landlock)' \
'-y[Sandbox '\''/'\'', the home directory or the sandbox root itself, too]' \
'--yes[Sandbox '\''/'\'', the home directory or the sandbox root itself, too]' \
'--json[Print JSON\: {"name", "source", "backend", "created", "directory"}]' \
'--isolated-network[Give it a network of its own, with loopback only]' \
'(--isolated-network --with-ports --allow-host --publish)--host-network[Use the host'\''s network, where isolation is stored or configured]' \
'--clean-env[Pass none of the caller'\''s variables but the essential ones]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::name -- Its name; a memorable one is made up without it:_default' \
&& ret=0
;;
(try)
_arguments "${_arguments_options[@]}" : \
'--backend=[How to copy; auto takes the best that works]:BACKEND:(auto btrfs overlay copy)' \
'--copy=[How to copy; auto takes the best that works]:BACKEND:(auto btrfs overlay copy)' \
'*--with-ports=[Forward a host-local TCP port to the same port inside; implies --isolated-network]:PORT:_default' \
'*--allow-host=[Let it reach a host through the proxy\: HOST, HOST\:PORT, *.DOMAIN\:PORT; implies --isolated-network]:HOST:_default' \
'*--publish=[Let the host reach a server inside, such as 8080\:3000; implies --isolated-network]:PORTS:_default' \
'--memory=[Limit memory, swap included, such as 512M ('\''none'\'' lifts a stored limit)]:SIZE:_default' \
'--cpus=[Limit processors, such as 1.5]:NUMBER:_default' \
'--pids=[Limit processes and threads]:NUMBER:_default' \
'--size=[Limit the disk space of its changes, such as 2G]:SIZE:_default' \
'*--expose=[Show a host path inside that would be hidden, read-only unless it ends in '\''\:rw'\'']:PATH:_files' \
'*--hide=[Hide a host path]:PATH:_files' \
'*-e+[Set a variable inside]:NAME=VALUE:_default' \
'*--env=[Set a variable inside]:NAME=VALUE:_default' \
'--isolation=[Which outer wall\: '\''landlock'\'' knowingly accepts a weaker one, for hosts without user namespaces]:WALL:(namespaces landlock)' \
'(--keep --discard)--promote[Apply the changes when the command succeeds; keep the sandbox when it fails]' \
'(--discard)--keep[Keep the sandbox]' \
'--discard[Discard the sandbox]' \
'-y[Sandbox '\''/'\'', the home directory or the sandbox root itself, too; with --promote, do not ask]' \
'--yes[Sandbox '\''/'\'', the home directory or the sandbox root itself, too; with --promote, do not ask]' \
'--isolated-network[Give it a network of its own, with loopback only]' \
'(--isolated-network --with-ports --allow-host --publish)--host-network[Use the host'\''s network, where isolation is stored or configured]' \
'--clean-env[Pass none of the caller'\''s variables but the essential ones]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::command -- The command and its arguments; one argument is given to `sh -c`:_cmdambivalent' \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
'-a[Also those that were discarded]' \
'--all[Also those that were discarded]' \
'--json[Print JSON\: \[{"name", "source", "backend", "created", "size", "changes", "status", "restorable_until"}\]]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(ls)
_arguments "${_arguments_options[@]}" : \
'-a[Also those that were discarded]' \
'--all[Also those that were discarded]' \
'--json[Print JSON\: \[{"name", "source", "backend", "created", "size", "changes", "status", "restorable_until"}\]]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(enter)
_arguments "${_arguments_options[@]}" : \
'-c+[Run this line in the shell instead of an interactive session]:LINE:_default' \
'--command=[Run this line in the shell instead of an interactive session]:LINE:_default' \
'*--with-ports=[Forward a host-local TCP port to the same port inside; implies --isolated-network]:PORT:_default' \
'*--allow-host=[Let it reach a host through the proxy\: HOST, HOST\:PORT, *.DOMAIN\:PORT; implies --isolated-network]:HOST:_default' \
'*--publish=[Let the host reach a server inside, such as 8080\:3000; implies --isolated-network]:PORTS:_default' \
'--memory=[Limit memory, swap included, such as 512M ('\''none'\'' lifts a stored limit)]:SIZE:_default' \
'--cpus=[Limit processors, such as 1.5]:NUMBER:_default' \
'--pids=[Limit processes and threads]:NUMBER:_default' \
'--size=[Limit the disk space of its changes, such as 2G]:SIZE:_default' \
'*--expose=[Show a host path inside that would be hidden, read-only unless it ends in '\''\:rw'\'']:PATH:_files' \
'*--hide=[Hide a host path]:PATH:_files' \
'*-e+[Set a variable inside]:NAME=VALUE:_default' \
'*--env=[Set a variable inside]:NAME=VALUE:_default' \
'--isolation=[Which outer wall\: '\''landlock'\'' knowingly accepts a weaker one, for hosts without user namespaces]:WALL:(namespaces landlock)' \
'--no-prompt[Leave the shell'\''s prompt as it is]' \
'--isolated-network[Give it a network of its own, with loopback only]' \
'(--isolated-network --with-ports --allow-host --publish)--host-network[Use the host'\''s network, where isolation is stored or configured]' \
'--clean-env[Pass none of the caller'\''s variables but the essential ones]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':name -- The sandbox:_sandbox_names' \
&& ret=0
;;
(run)
_arguments "${_arguments_options[@]}" : \
'*--with-ports=[Forward a host-local TCP port to the same port inside; implies --isolated-network]:PORT:_default' \
'*--allow-host=[Let it reach a host through the proxy\: HOST, HOST\:PORT, *.DOMAIN\:PORT; implies --isolated-network]:HOST:_default' \
'*--publish=[Let the host reach a server inside, such as 8080\:3000; implies --isolated-network]:PORTS:_default' \
'--memory=[Limit memory, swap included, such as 512M ('\''none'\'' lifts a stored limit)]:SIZE:_default' \
'--cpus=[Limit processors, such as 1.5]:NUMBER:_default' \
'--pids=[Limit processes and threads]:NUMBER:_default' \
'--size=[Limit the disk space of its changes, such as 2G]:SIZE:_default' \
'*--expose=[Show a host path inside that would be hidden, read-only unless it ends in '\''\:rw'\'']:PATH:_files' \
'*--hide=[Hide a host path]:PATH:_files' \
'*-e+[Set a variable inside]:NAME=VALUE:_default' \
'*--env=[Set a variable inside]:NAME=VALUE:_default' \
'--isolation=[Which outer wall\: '\''landlock'\'' knowingly accepts a weaker one, for hosts without user namespaces]:WALL:(namespaces landlock)' \
'--isolated-network[Give it a network of its own, with loopback only]' \
'(--isolated-network --with-ports --allow-host --publish)--host-network[Use the host'\''s network, where isolation is stored or configured]' \
'--clean-env[Pass none of the caller'\''s variables but the essential ones]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::words -- The sandbox, then the command and its arguments:_sandbox_words' \
&& ret=0
;;
(exec)
_arguments "${_arguments_options[@]}" : \
'-l+[What it is written in \[shell, or what the name of FILE says\]]:LANGUAGE:(python javascript shell)' \
'--language=[What it is written in \[shell, or what the name of FILE says\]]:LANGUAGE:(python javascript shell)' \
'()-f+[Read the code from this file]:FILE:_files' \
'()--file=[Read the code from this file]:FILE:_files' \
'-e+[What it is given, as JSON; @FILE reads it from there, @- from stdin]:JSON:_default' \
'--event=[What it is given, as JSON; @FILE reads it from there, @- from stdin]:JSON:_default' \
'-t+[How long it may take, 1 to 3600 seconds \[30\]]:SECONDS:_default' \
'--timeout=[How long it may take, 1 to 3600 seconds \[30\]]:SECONDS:_default' \
'--idempotency-key=[What makes this safe to send again; one is made up without it]:KEY:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--retry[Run it again when it crashes, three times at most]' \
'-d[Do not wait for it\: print the execution'\''s identifier]' \
'--detach[Do not wait for it\: print the execution'\''s identifier]' \
'--json[Print JSON\: the result, or with --detach {"execution_id", "status", "submitted_at"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session; or a sandbox'\''s name, then a command and its arguments:_sandbox_names' \
'*::code -- The code; '\''-'\'' reads it from stdin:_default' \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
'--since=[Only what was modified since\: 10m, 2h, 3d, 2026-01-31, '\''2026-01-31 14\:00'\'']:TIME:_default' \
'(--files --json)--stat[Lines added and deleted per file]' \
'(--json)--files[Changed paths with a letter\: A added, M modified, D deleted, R renamed, P permissions, T type]' \
'(--json)--name-only[Changed paths with a letter\: A added, M modified, D deleted, R renamed, P permissions, T type]' \
'--json[Print JSON\: \[{"path", "kind", "before", "after", "flags", …}\]]' \
'--exit-code[Exit with status 1 when there are changes]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':name -- The sandbox:_sandbox_names' \
'*::paths -- Only what is at or below these:_files' \
&& ret=0
;;
(promote)
_arguments "${_arguments_options[@]}" : \
'*--resolve=[Resolve one conflict\: PATH=ours, theirs, merge or skip]:PATH=HOW:_default' \
'-n[Show the plan and stop]' \
'--dry-run[Show the plan and stop]' \
'(-y --yes -n --dry-run)-i[Decide per file and per hunk]' \
'(-y --yes -n --dry-run)--interactive[Decide per file and per hunk]' \
'--backup[Also copy what is replaced or deleted to SOURCE.sandbox-backup-TIME, beside the source]' \
'-y[Do not ask]' \
'--yes[Do not ask]' \
'(-i --interactive --backup --resolve --ours --theirs --merge)--undo[Take the last promote of this source back]' \
'(-i --interactive --backup --resolve --ours --theirs --merge)--redo[Apply again what the last --undo took back]' \
'--force[With --undo or --redo\: leave paths that changed since as they are, and do the others]' \
'--allow-git-control[Apply what steers git (.git/config, .git/hooks) and new, deleted or broken repositories, too]' \
'(--theirs --merge)--ours[Resolve all other conflicts with the sandbox'\''s version]' \
'(--merge)--theirs[Resolve all other conflicts with the source'\''s version]' \
'--merge[Resolve all other conflicts by merging; what overlaps stays a conflict]' \
'(-i --interactive)--json[Print JSON\: the plan, and whether it was applied]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::name -- The sandbox; with --undo or --redo it may be one that was discarded, or none for the current directory:_sandbox_names' \
'*::paths -- Only what is at or below these:_files' \
&& ret=0
;;
(discard)
_arguments "${_arguments_options[@]}" : \
'--as=[With --undo\: restore it under this name]:NEW:_default' \
'-f[Do not ask]' \
'-y[Do not ask]' \
'--force[Do not ask]' \
'--yes[Do not ask]' \
'(--undo)--purge[Delete at once; it cannot be restored]' \
'--undo[Restore discarded sandboxes, of one name the latest; without a NAME, list them]' \
'--json[With --undo\: print JSON\: \[{"name", "source", "backend", "discarded", "until", "size"}\], or the sandboxes restored as \`list\` prints them]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::names -- The sandboxes:_sandbox_names' \
&& ret=0
;;
(rm)
_arguments "${_arguments_options[@]}" : \
'--as=[With --undo\: restore it under this name]:NEW:_default' \
'-f[Do not ask]' \
'-y[Do not ask]' \
'--force[Do not ask]' \
'--yes[Do not ask]' \
'(--undo)--purge[Delete at once; it cannot be restored]' \
'--undo[Restore discarded sandboxes, of one name the latest; without a NAME, list them]' \
'--json[With --undo\: print JSON\: \[{"name", "source", "backend", "discarded", "until", "size"}\], or the sandboxes restored as \`list\` prints them]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::names -- The sandboxes:_sandbox_names' \
&& ret=0
;;
(sync)
_arguments "${_arguments_options[@]}" : \
'--direction=[Which way; sandbox-to-source is \`sandbox promote\`]:DIRECTION:((source-to-sandbox\:"The sandbox takes over the source'\''s changes"
sandbox-to-source\:"The source takes over the sandbox'\''s changes"))' \
'-n[Show what would be done and stop]' \
'--dry-run[Show what would be done and stop]' \
'-y[Do not ask (for sandbox-to-source)]' \
'--yes[Do not ask (for sandbox-to-source)]' \
'--json[Print JSON\: {"steps"\: \[{"path", "action"}\], "conflicts"}]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':name -- The sandbox:_sandbox_names' \
&& ret=0
;;
(fork)
_arguments "${_arguments_options[@]}" : \
'-n+[How many to make]:NUMBER:_default' \
'--number=[How many to make]:NUMBER:_default' \
'--json[Print JSON\: \[{"name", "source", "backend"}\]]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':name -- The sandbox to fork:_sandbox_names' \
':new -- The new one'\''s name:_default' \
&& ret=0
;;
(snapshot)
_arguments "${_arguments_options[@]}" : \
'(--delete)-l[List the checkpoints]' \
'(--delete)--list[List the checkpoints]' \
'--delete[Delete the checkpoint LABEL]' \
'--json[Print JSON\: {"label"}, or with --list \[{"label", "created", "size", "home"}\]]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':name -- The sandbox:_sandbox_names' \
'::label -- What to call it:_default' \
&& ret=0
;;
(rollback)
_arguments "${_arguments_options[@]}" : \
'--home[Only the home; without LABEL, empty it]' \
'-y[Do not ask]' \
'--yes[Do not ask]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':name -- The sandbox:_sandbox_names' \
'::label -- The checkpoint:_default' \
&& ret=0
;;
(pause)
_arguments "${_arguments_options[@]}" : \
'--stop[End the processes, keep the files]' \
'--json[Print JSON\: {"name", "processes"}]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':name -- The sandbox:_sandbox_names' \
&& ret=0
;;
(resume)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON\: {"name", "processes"}]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':name -- The sandbox:_sandbox_names' \
&& ret=0
;;
(info)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON, with the same fields as the text]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':name -- The sandbox:_sandbox_names' \
&& ret=0
;;
(path)
_arguments "${_arguments_options[@]}" : \
'--layer[Where its changes are kept, as the overlay file system writes them]' \
'--json[Print JSON\: {"path", "layer"}, either may be null]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':name -- The sandbox:_sandbox_names' \
&& ret=0
;;
(history)
_arguments "${_arguments_options[@]}" : \
'-n+[At most so many]:NUMBER:_default' \
'--limit=[At most so many]:NUMBER:_default' \
'--json[Print JSON, one record per line, as they are stored]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::name -- Only this sandbox:_sandbox_names' \
&& ret=0
;;
(gc)
_arguments "${_arguments_options[@]}" : \
'-n[Show what would be deleted and stop]' \
'--dry-run[Show what would be deleted and stop]' \
'--stale[Also stale sandboxes without changes]' \
'--discarded[Also discarded sandboxes that could still be restored]' \
'--json[Print JSON\: \[{"what", "path", "size", "deleted"}\]]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(serve)
_arguments "${_arguments_options[@]}" : \
'--config=[Read settings from this TOML file \[SANDBOX_CONFIG\]]:FILE:_files' \
'--bind=[Where to listen \[SANDBOX_BIND, default 127.0.0.1\:8000\]]:ADDRESS:_default' \
'--data=[Where to keep what is kept \[SANDBOX_DATA\]]:DIR:_default' \
'--database=[The database\: sqlite\:, postgres\: or mysql\: URL; one with a password belongs in DATABASE_URL]:URL:_default' \
'--objects=[Where objects are\: file\:DIR, s3\:BUCKET or s3\://BUCKET/PREFIX \[SANDBOX_OBJECTS\]]:URL:_default' \
'*--runtime=[What sessions run on\: local \[SANDBOX_RUNTIME\]]:NAME:_default' \
'--user=[The user on this machine for sessions that have none of their own, when the server is root \[SANDBOX_USER, the second of --session-uids\]]:UID:GID:_default' \
'--session-uids=[The users that sessions have, each its own, when the server is root\: FIRST-LAST, chosen or shared \[SANDBOX_SESSION_UIDS, chosen\]]:RANGE:_default' \
'--node-id=[What this machine is called among those that share a database \[SANDBOX_NODE_ID\]]:NAME:_default' \
'--advertise=[Where others that share the database reach this one, as http\://host\:port \[SANDBOX_ADVERTISE, where it listens\]]:URL:_default' \
'--log-level=[error, warn, info, debug or trace; also by part \[LOG_LEVEL, info\]]:LEVEL:_default' \
'--drain-timeout=[How long executions may go on when the server is told to end \[SANDBOX_DRAIN_TIMEOUT, 30s\]]:TIME:_default' \
'--requests-per-second=[How often a key may ask \[SANDBOX_REQUESTS_PER_SECOND, 1000\]]:NUMBER:_default' \
'--max-connections=[The most connections at a time; others wait \[SANDBOX_MAX_CONNECTIONS, 10000\]]:NUMBER:_default' \
'*--trusted-proxy=[A proxy that is believed about the client'\''s address, as an address or CIDR block; again for more \[SANDBOX_TRUSTED_PROXIES, none\]]:NETWORK:_default' \
'*--allowed-origin=[From where browsers may ask, such as https\://app.example.com; again for more \[SANDBOX_ALLOWED_ORIGINS, none\]]:ORIGIN:_default' \
'--database-max-connections=[The most connections to the database \[DATABASE_MAX_CONNECTIONS, 60\]]:NUMBER:_default' \
'--database-max-lifetime=[After this long a connection is replaced \[DATABASE_MAX_LIFETIME, 1h\]]:TIME:_default' \
'--s3-endpoint=[The S3 server'\''s URL; Amazon'\''s own without it \[S3_ENDPOINT\]]:URL:_default' \
'--s3-bucket=[The bucket, as --objects s3\:BUCKET \[S3_BUCKET\]]:NAME:_default' \
'--s3-region=[The region that requests are signed for \[AWS_REGION, us-east-1\]]:NAME:_default' \
'--s3-addressing=[Where requests name the bucket\: path or host \[S3_ADDRESSING, path\]]:WHERE:_default' \
'--idle-timeout=[A session that nobody used for so long ends; or off \[SANDBOX_IDLE_TIMEOUT, 30m\]]:TIME:_default' \
'--max-lifetime=[A session ends at this age, renewed or not; or off \[SANDBOX_MAX_LIFETIME, 6h\]]:TIME:_default' \
'--expire=[Whether sessions end when they expire\: on or off \[SANDBOX_EXPIRE, on\]]:SWITCH:_default' \
'--reap-interval=[How often sessions are looked at for ending, a minute at most \[SANDBOX_REAP_INTERVAL, 10s\]]:TIME:_default' \
'--retention=[How long a workspace is kept after its session'\''s end; or off\: for ever \[SANDBOX_RETENTION, 24h\]]:TIME:_default' \
'--record-retention=[How long a session that ended and its executions are remembered; or off\: for ever \[SANDBOX_RECORD_RETENTION, off\]]:TIME:_default' \
'--hibernate-after=[A session unused for so long gives its processes up until its next use; or off \[SANDBOX_HIBERNATE_AFTER, 1m\]]:TIME:_default' \
'--strict-limits=[Refuse sessions whose template'\''s limits cannot be enforced here\: on or off \[SANDBOX_STRICT_LIMITS, off\]]:SWITCH:_default' \
'--max-sessions=[The most sessions at a time \[SANDBOX_MAX_SESSIONS, 20000\]]:NUMBER:_default' \
'--overcommit=[How much memory and disk a new session may be promised, in percent of what is free \[SANDBOX_OVERCOMMIT, 200\]]:PERCENT:_default' \
'*--pool=[How many sessions of a template wait to be asked for; again for more, or none \[SANDBOX_POOL, python-basic=2 and nodejs-basic=1\]]:TEMPLATE=NUMBER:_default' \
'*--source-root=[A directory below which a session'\''s source may be; again for more \[SANDBOX_SOURCE_ROOTS, none\]]:DIR:_default' \
'--promote=[Whether what a session changed may be applied to its source\: on or off \[SANDBOX_PROMOTE, off\]]:SWITCH:_default' \
'*--allowed-address=[An address that sessions may ask to reach though it is no public name, as 10.0.0.7\:5432; again for more \[SANDBOX_ALLOWED_ADDRESSES, none\]]:HOST:PORT:_default' \
'--check[Tell what would be used and where each of it comes from, and start nothing]' \
'--json[With --check, print JSON\: {"settings"\: \[{"setting", "value", "origin", "from"}\], "warnings"}]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(session)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
":: :_sandbox__subcmd__session_commands" \
"*::: :->session" \
&& ret=0

    case $state in
    (session)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-session-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
'--timeout=[How long it lives, 60 to 3600 seconds \[300\]]:SECONDS:_default' \
'--mode=[Whether the workspace is reattached by the next session of the same agent]:MODE:((ephemeral\:"It ends when it is idle or expires"
persistent\:"The next session of the same agent finds its workspace"))' \
'--agent=[Whose it is; a persistent one needs it]:AGENT:_default' \
'*-e+[Set a variable for its code; without a value, to the value it has here]:NAME[=VALUE]:_default' \
'*--env=[Set a variable for its code; without a value, to the value it has here]:NAME[=VALUE]:_default' \
'*--env-file=[Set the variables in a file, a NAME=VALUE on each line]:FILE:_files' \
'*--allow=[Let its code reach this host and port; implies --network]:HOST:PORT:_default' \
'(--file)--source=[Start from a copy of this directory of the server'\''s, below a root that its configuration names]:DIR:_default' \
'*--file=[Start with this text file of yours at PATH in the workspace; again for more]:PATH=FILE:_default' \
'--pool=[Whether it is to come from the warm pool]:CHOICE:((prefer\:"If there is one"
require\:"Or not at all"
never\:"Not even if there is one"))' \
'--idempotency-key=[What makes this safe to send again; one is made up without it]:KEY:_default' \
'--cpu=[Processors, 0.5 to 4]:NUMBER:_default' \
'--memory=[Memory, 256Mi to 8Gi]:SIZE:_default' \
'--disk=[Disk, 1Gi to 50Gi]:SIZE:_default' \
'--max-processes=[Processes and threads at once, 32 to 1024]:NUMBER:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--network[Let its code reach the network\: every public address, where no --allow says otherwise]' \
'--json[Print JSON\: the session, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':template -- What it is made from; `sandbox template list` shows what there is:_default' \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
'--status=[Only those that are creating, running, paused, completed, failed, timeout or terminated]:STATUS:_default' \
'--template=[Only those made from this template]:TEMPLATE:_default' \
'--agent=[Only this agent'\''s]:AGENT:_default' \
'--limit=[How many, 1 to 200 \[50\]]:NUMBER:_default' \
'(--cursor)--offset=[How many to leave out first]:NUMBER:_default' \
'--cursor=[Where the page before this one ended, as it said]:CURSOR:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'-a[All of them, page after page]' \
'--all[All of them, page after page]' \
'--json[Print JSON\: {"sessions"\: \[session\], "total", "next_cursor"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(ls)
_arguments "${_arguments_options[@]}" : \
'--status=[Only those that are creating, running, paused, completed, failed, timeout or terminated]:STATUS:_default' \
'--template=[Only those made from this template]:TEMPLATE:_default' \
'--agent=[Only this agent'\''s]:AGENT:_default' \
'--limit=[How many, 1 to 200 \[50\]]:NUMBER:_default' \
'(--cursor)--offset=[How many to leave out first]:NUMBER:_default' \
'--cursor=[Where the page before this one ended, as it said]:CURSOR:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'-a[All of them, page after page]' \
'--all[All of them, page after page]' \
'--json[Print JSON\: {"sessions"\: \[session\], "total", "next_cursor"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(get)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: the session, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
&& ret=0
;;
(delete)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: {"message"} for each, on a line]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::sessions -- The sessions:_default' \
&& ret=0
;;
(rm)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: {"message"} for each, on a line]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::sessions -- The sessions:_default' \
&& ret=0
;;
(renew)
_arguments "${_arguments_options[@]}" : \
'--timeout=[How long, 60 to 3600 seconds; as before without it]:SECONDS:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: the session, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
&& ret=0
;;
(pause)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: the session, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
&& ret=0
;;
(resume)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: the session, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
&& ret=0
;;
(fork)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: the new session, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session to fork:_default' \
&& ret=0
;;
(changes)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'(--json)--files[Changed paths with a letter\: A added, M modified, D deleted, R renamed, P permissions, T type]' \
'(--json)--name-only[Changed paths with a letter\: A added, M modified, D deleted, R renamed, P permissions, T type]' \
'--json[Print JSON\: {"changes"\: \[change\], "total", "diff", "not_in_diff", "truncated"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
&& ret=0
;;
(events)
_arguments "${_arguments_options[@]}" : \
'--after=[Only those after the event of this number]:NUMBER:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON, a line for each\: {"id", "event", "at", "detail"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_sandbox__subcmd__session__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-session-help-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(get)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(delete)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(renew)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(pause)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(resume)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(fork)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(changes)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(events)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(execution)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
":: :_sandbox__subcmd__execution_commands" \
"*::: :->execution" \
&& ret=0

    case $state in
    (execution)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-execution-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
'--status=[Only those that are pending, running, completed, failed, timeout, crashed or cancelled]:STATUS:_default' \
'--limit=[How many, 1 to 200 \[50\]]:NUMBER:_default' \
'(--cursor)--offset=[How many to leave out first]:NUMBER:_default' \
'--cursor=[Where the page before this one ended, as it said]:CURSOR:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'-a[All of them, page after page]' \
'--all[All of them, page after page]' \
'--json[Print JSON\: {"executions"\: \[status\], "total", "next_cursor"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
&& ret=0
;;
(ls)
_arguments "${_arguments_options[@]}" : \
'--status=[Only those that are pending, running, completed, failed, timeout, crashed or cancelled]:STATUS:_default' \
'--limit=[How many, 1 to 200 \[50\]]:NUMBER:_default' \
'(--cursor)--offset=[How many to leave out first]:NUMBER:_default' \
'--cursor=[Where the page before this one ended, as it said]:CURSOR:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'-a[All of them, page after page]' \
'--all[All of them, page after page]' \
'--json[Print JSON\: {"executions"\: \[status\], "total", "next_cursor"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
&& ret=0
;;
(get)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: the execution, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':execution -- The execution:_default' \
&& ret=0
;;
(status)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: the status, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':execution -- The execution:_default' \
&& ret=0
;;
(result)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'-w[Wait until it is over]' \
'--wait[Wait until it is over]' \
'--json[Print JSON\: the result, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':execution -- The execution:_default' \
&& ret=0
;;
(cancel)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: the status, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':execution -- The execution:_default' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_sandbox__subcmd__execution__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-execution-help-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(get)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(status)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(result)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(cancel)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(file)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
":: :_sandbox__subcmd__file_commands" \
"*::: :->file" \
&& ret=0

    case $state in
    (file)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-file-command-$line[1]:"
        case $line[1] in
            (put)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: {"session_id", "path", "size"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
':file -- The file here; '\''-'\'' reads it from stdin:_files' \
'::path -- Where it goes in the workspace; to its own name without it:_default' \
&& ret=0
;;
(get)
_arguments "${_arguments_options[@]}" : \
'--range=[Only these bytes\: 0-1023, 1024- (from there on) or -100 (the last hundred)]:BYTES:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: {"session_id", "path", "size", "file"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
':path -- The file in the workspace:_default' \
'::to -- The file or directory here that it goes to \[its own name here\]; '\''-'\'' writes it to stdout:_files' \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
'--limit=[How many entries, 1 to 1000 \[200\]]:NUMBER:_default' \
'--cursor=[Where the page before this one ended, as it said]:CURSOR:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'-a[All of them, page after page]' \
'--all[All of them, page after page]' \
'--json[Print JSON\: {"path", "files"\: \[{"name", "kind", "size", "modified_at"}\], "next_cursor"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
'::path -- The directory \[the workspace itself\]:_default' \
&& ret=0
;;
(ls)
_arguments "${_arguments_options[@]}" : \
'--limit=[How many entries, 1 to 1000 \[200\]]:NUMBER:_default' \
'--cursor=[Where the page before this one ended, as it said]:CURSOR:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'-a[All of them, page after page]' \
'--all[All of them, page after page]' \
'--json[Print JSON\: {"path", "files"\: \[{"name", "kind", "size", "modified_at"}\], "next_cursor"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
'::path -- The directory \[the workspace itself\]:_default' \
&& ret=0
;;
(remove)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: {"session_id", "path"} for each, on a line]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
'*::paths -- What to remove:_default' \
&& ret=0
;;
(rm)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: {"session_id", "path"} for each, on a line]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
'*::paths -- What to remove:_default' \
&& ret=0
;;
(archive)
_arguments "${_arguments_options[@]}" : \
'--path=[The directory in the workspace \[all of it\]]:PATH:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: {"session_id", "path", "size", "file"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':session -- The session:_default' \
'::to -- The file here that it goes to; '\''-'\'' writes it to stdout:_files' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_sandbox__subcmd__file__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-file-help-command-$line[1]:"
        case $line[1] in
            (put)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(get)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(remove)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(archive)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(template)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
":: :_sandbox__subcmd__template_commands" \
"*::: :->template" \
&& ret=0

    case $state in
    (template)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-template-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
'--name=[What people call it; its identifier without it]:NAME:_default' \
'--image=['\''host'\'', a directory of the server'\''s with an unpacked root, or an image reference]:IMAGE:_default' \
'--base-image=[What the image was built from]:IMAGE:_default' \
'--runtime=[What its sessions run on\: local, docker or kubernetes \[local\]]:RUNTIME:_default' \
'*--package=[What must be there when a session starts, such as numpy or numpy==2.1; again for more]:PACKAGE:_default' \
'--user=[As whom its code runs; only 1000\:1000 is allowed]:UID:GID:_default' \
'--cpu=[Processors, 0.5 to 4]:NUMBER:_default' \
'--memory=[Memory, 256Mi to 8Gi]:SIZE:_default' \
'--disk=[Disk, 1Gi to 50Gi]:SIZE:_default' \
'--max-processes=[Processes and threads at once, 32 to 1024]:NUMBER:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--privileged[Ask for privileges; servers refuse that]' \
'--inactive[Let no sessions be made from it yet]' \
'--json[Print JSON\: the template, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':template -- Its identifier\: letters, digits, '\''.'\'', '\''_'\'' and '\''-'\'', 64 at most:_default' \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
'--limit=[How many, 1 to 200 \[50\]]:NUMBER:_default' \
'(--cursor)--offset=[How many to leave out first]:NUMBER:_default' \
'--cursor=[Where the page before this one ended, as it said]:CURSOR:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--include-inactive[Those that sessions cannot be made from, too]' \
'-a[All of them, page after page]' \
'--all[All of them, page after page]' \
'--json[Print JSON\: {"templates"\: \[template\], "total", "next_cursor"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(ls)
_arguments "${_arguments_options[@]}" : \
'--limit=[How many, 1 to 200 \[50\]]:NUMBER:_default' \
'(--cursor)--offset=[How many to leave out first]:NUMBER:_default' \
'--cursor=[Where the page before this one ended, as it said]:CURSOR:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--include-inactive[Those that sessions cannot be made from, too]' \
'-a[All of them, page after page]' \
'--all[All of them, page after page]' \
'--json[Print JSON\: {"templates"\: \[template\], "total", "next_cursor"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(get)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: the template, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':template -- The template:_default' \
&& ret=0
;;
(update)
_arguments "${_arguments_options[@]}" : \
'--name=[What people call it]:NAME:_default' \
'--image=['\''host'\'', a directory of the server'\''s with an unpacked root, or an image reference]:IMAGE:_default' \
'*--package=[What must be there when a session starts, instead of what was named before; again for more]:PACKAGE:_default' \
'--user=[As whom its code runs; only 1000\:1000 is allowed]:UID:GID:_default' \
'--cpu=[Processors, 0.5 to 4]:NUMBER:_default' \
'--memory=[Memory, 256Mi to 8Gi]:SIZE:_default' \
'--disk=[Disk, 1Gi to 50Gi]:SIZE:_default' \
'--max-processes=[Processes and threads at once, 32 to 1024]:NUMBER:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'(--package)--no-packages[Nothing must be there when a session starts]' \
'--privileged[Ask for privileges; servers refuse that]' \
'--active[Let sessions be made from it]' \
'(--active)--inactive[Let no more sessions be made from it]' \
'--json[Print JSON\: the template, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':template -- The template:_default' \
&& ret=0
;;
(delete)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: {"id"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':template -- The template:_default' \
&& ret=0
;;
(rm)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: {"id"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':template -- The template:_default' \
&& ret=0
;;
(seed)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: {"created"\: \[id\], "existing"\: \[id\]}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_sandbox__subcmd__template__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-template-help-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(get)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(update)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(delete)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(seed)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(key)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
":: :_sandbox__subcmd__key_commands" \
"*::: :->key" \
&& ret=0

    case $state in
    (key)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-key-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
'--scope=[What it allows; each allows what the one before it does]:SCOPE:((read\:"To look"
operate\:"To make, use and end sessions"
admin\:"Everything"))' \
'(--json)-o+[Write the key to this new file, which only you can read, and not to stdout]:FILE:_files' \
'(--json)--output=[Write the key to this new file, which only you can read, and not to stdout]:FILE:_files' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: {"key_id", "name", "scope", "created_at", "revoked_at", "secret"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':label -- What people call it:_default' \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
'--limit=[How many, 1 to 200 \[50\]]:NUMBER:_default' \
'(--cursor)--offset=[How many to leave out first]:NUMBER:_default' \
'--cursor=[Where the page before this one ended, as it said]:CURSOR:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'-a[All of them, page after page]' \
'--all[All of them, page after page]' \
'--json[Print JSON\: {"keys"\: \[{"key_id", "name", "scope", "created_at", "revoked_at"}\], "total", "next_cursor"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(ls)
_arguments "${_arguments_options[@]}" : \
'--limit=[How many, 1 to 200 \[50\]]:NUMBER:_default' \
'(--cursor)--offset=[How many to leave out first]:NUMBER:_default' \
'--cursor=[Where the page before this one ended, as it said]:CURSOR:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'-a[All of them, page after page]' \
'--all[All of them, page after page]' \
'--json[Print JSON\: {"keys"\: \[{"key_id", "name", "scope", "created_at", "revoked_at"}\], "total", "next_cursor"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(revoke)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: {"key_id"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':key -- The key'\''s identifier:_default' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_sandbox__subcmd__key__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-key-help-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(revoke)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(node)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
":: :_sandbox__subcmd__node_commands" \
"*::: :->node" \
&& ret=0

    case $state in
    (node)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-node-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
'--limit=[How many, 1 to 200 \[50\]]:NUMBER:_default' \
'(--cursor)--offset=[How many to leave out first]:NUMBER:_default' \
'--cursor=[Where the page before this one ended, as it said]:CURSOR:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'-a[All of them, page after page]' \
'--all[All of them, page after page]' \
'--json[Print JSON\: {"nodes"\: \[node\], "total", "next_cursor"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(ls)
_arguments "${_arguments_options[@]}" : \
'--limit=[How many, 1 to 200 \[50\]]:NUMBER:_default' \
'(--cursor)--offset=[How many to leave out first]:NUMBER:_default' \
'--cursor=[Where the page before this one ended, as it said]:CURSOR:_default' \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'-a[All of them, page after page]' \
'--all[All of them, page after page]' \
'--json[Print JSON\: {"nodes"\: \[node\], "total", "next_cursor"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(drain)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--json[Print JSON\: the node, as the API has it]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':node -- The node:_default' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_sandbox__subcmd__node__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-node-help-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(drain)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
;;
(health)
_arguments "${_arguments_options[@]}" : \
'--server=[The server'\''s address \[SANDBOX_SERVER, http\://127.0.0.1\:8000\]]:URL:_default' \
'--key-file=[The file that holds the API key \[SANDBOX_API_KEY_FILE, or the key itself in SANDBOX_API_KEY\]]:FILE:_files' \
'--ready[Only whether it takes requests]' \
'(--ready --json)--metrics[What it measured, as Prometheus reads it]' \
'--json[Print JSON\: {"status", "version", "uptime_seconds", "components"}, or with --ready {"ready"}]' \
'--allow-plain-http[Send the API key over plain http to another machine, too]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(doctor)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON\: \[{"feature", "works", "detail", "meaning", "fix", "required"}\]]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(version)
_arguments "${_arguments_options[@]}" : \
'--json[Print JSON\: {"version"}]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
&& ret=0
;;
(completions)
_arguments "${_arguments_options[@]}" : \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':shell -- Which shell:(bash zsh fish)' \
&& ret=0
;;
(man)
_arguments "${_arguments_options[@]}" : \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::directory -- A directory for sandbox.1, sandbox-create.1 and so on:_files' \
&& ret=0
;;
(__complete-names)
_arguments "${_arguments_options[@]}" : \
'--discarded[Those of discarded sandboxes that can be restored]' \
'-h[Print help]' \
'--help[Print help]' \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
":: :_sandbox__subcmd__help_commands" \
"*::: :->help" \
&& ret=0

    case $state in
    (help)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-help-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(try)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(enter)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(run)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(exec)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(promote)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(discard)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(sync)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(fork)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(snapshot)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(rollback)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(pause)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(resume)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(info)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(path)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(history)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(gc)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(serve)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(session)
_arguments "${_arguments_options[@]}" : \
":: :_sandbox__subcmd__help__subcmd__session_commands" \
"*::: :->session" \
&& ret=0

    case $state in
    (session)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-help-session-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(get)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(delete)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(renew)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(pause)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(resume)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(fork)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(changes)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(events)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(execution)
_arguments "${_arguments_options[@]}" : \
":: :_sandbox__subcmd__help__subcmd__execution_commands" \
"*::: :->execution" \
&& ret=0

    case $state in
    (execution)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-help-execution-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(get)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(status)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(result)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(cancel)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(file)
_arguments "${_arguments_options[@]}" : \
":: :_sandbox__subcmd__help__subcmd__file_commands" \
"*::: :->file" \
&& ret=0

    case $state in
    (file)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-help-file-command-$line[1]:"
        case $line[1] in
            (put)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(get)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(remove)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(archive)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(template)
_arguments "${_arguments_options[@]}" : \
":: :_sandbox__subcmd__help__subcmd__template_commands" \
"*::: :->template" \
&& ret=0

    case $state in
    (template)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-help-template-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(get)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(update)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(delete)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(seed)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(key)
_arguments "${_arguments_options[@]}" : \
":: :_sandbox__subcmd__help__subcmd__key_commands" \
"*::: :->key" \
&& ret=0

    case $state in
    (key)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-help-key-command-$line[1]:"
        case $line[1] in
            (create)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(revoke)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(node)
_arguments "${_arguments_options[@]}" : \
":: :_sandbox__subcmd__help__subcmd__node_commands" \
"*::: :->node" \
&& ret=0

    case $state in
    (node)
        words=($line[1] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:sandbox-help-node-command-$line[1]:"
        case $line[1] in
            (list)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(drain)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
(health)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(doctor)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(version)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(completions)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(man)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(__complete-names)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
(help)
_arguments "${_arguments_options[@]}" : \
&& ret=0
;;
        esac
    ;;
esac
;;
        esac
    ;;
esac
}

(( $+functions[_sandbox_commands] )) ||
_sandbox_commands() {
    local commands; commands=(
'create:Make a sandbox of a directory' \
'try:Run a command on a copy of the current directory, look, then decide' \
'list:List sandboxes, newest first' \
'ls:List sandboxes, newest first' \
'enter:Open an interactive shell in a sandbox' \
'run:Run a command in a sandbox' \
'exec:Run a command in a sandbox, or code in a session of a server' \
'diff:Show what changed in a sandbox' \
'promote:Apply a sandbox'\''s changes to its source' \
'discard:Delete a sandbox and the changes in it' \
'rm:Delete a sandbox and the changes in it' \
'sync:Bring the source'\''s changes into a sandbox' \
'fork:Make a sandbox of a sandbox' \
'snapshot:Save a checkpoint inside a sandbox, or list them' \
'rollback:Take a sandbox back to a checkpoint' \
'pause:Freeze the processes of a sandbox' \
'resume:Let the processes of a paused sandbox go on' \
'info:Show everything about a sandbox' \
'path:Print a host path to a sandbox'\''s files, where there is one' \
'history:Show every operation on every sandbox' \
'gc:Clean up what nobody needs any more' \
'serve:Serve sessions over HTTP' \
'session:Make, look at and end sessions of a server' \
'execution:Look at what was run in sessions, and end what runs' \
'file:Put files into a session'\''s workspace, and get them out' \
'template:Make, look at and change what sessions are made from' \
'key:Make, list and revoke a server'\''s API keys' \
'node:Look at the machines that sessions run on, and take one out of service' \
'health:Show how a server and its parts are' \
'doctor:Show what this host offers, by trying it' \
'version:Print the version' \
'completions:Print a completion script for your shell' \
'man:Print the manual page, or write one for every command' \
'__complete-names:' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox commands' commands "$@"
}
(( $+functions[_sandbox__subcmd____complete-names_commands] )) ||
_sandbox__subcmd____complete-names_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox __complete-names commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__completions_commands] )) ||
_sandbox__subcmd__completions_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox completions commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__create_commands] )) ||
_sandbox__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox create commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__diff_commands] )) ||
_sandbox__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox diff commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__discard_commands] )) ||
_sandbox__subcmd__discard_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox discard commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__doctor_commands] )) ||
_sandbox__subcmd__doctor_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox doctor commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__enter_commands] )) ||
_sandbox__subcmd__enter_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox enter commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__exec_commands] )) ||
_sandbox__subcmd__exec_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox exec commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__execution_commands] )) ||
_sandbox__subcmd__execution_commands() {
    local commands; commands=(
'list:List a session'\''s executions, newest first' \
'ls:List a session'\''s executions, newest first' \
'get:Show everything about an execution, its code and its event' \
'status:Show where an execution is in its life' \
'result:Show what became of an execution, as if it had just been run' \
'cancel:End an execution, with everything that it started' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox execution commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__execution__subcmd__cancel_commands] )) ||
_sandbox__subcmd__execution__subcmd__cancel_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox execution cancel commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__execution__subcmd__get_commands] )) ||
_sandbox__subcmd__execution__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox execution get commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__execution__subcmd__help_commands] )) ||
_sandbox__subcmd__execution__subcmd__help_commands() {
    local commands; commands=(
'list:List a session'\''s executions, newest first' \
'get:Show everything about an execution, its code and its event' \
'status:Show where an execution is in its life' \
'result:Show what became of an execution, as if it had just been run' \
'cancel:End an execution, with everything that it started' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox execution help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__execution__subcmd__help__subcmd__cancel_commands] )) ||
_sandbox__subcmd__execution__subcmd__help__subcmd__cancel_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox execution help cancel commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__execution__subcmd__help__subcmd__get_commands] )) ||
_sandbox__subcmd__execution__subcmd__help__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox execution help get commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__execution__subcmd__help__subcmd__help_commands] )) ||
_sandbox__subcmd__execution__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox execution help help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__execution__subcmd__help__subcmd__list_commands] )) ||
_sandbox__subcmd__execution__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox execution help list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__execution__subcmd__help__subcmd__result_commands] )) ||
_sandbox__subcmd__execution__subcmd__help__subcmd__result_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox execution help result commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__execution__subcmd__help__subcmd__status_commands] )) ||
_sandbox__subcmd__execution__subcmd__help__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox execution help status commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__execution__subcmd__list_commands] )) ||
_sandbox__subcmd__execution__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox execution list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__execution__subcmd__result_commands] )) ||
_sandbox__subcmd__execution__subcmd__result_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox execution result commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__execution__subcmd__status_commands] )) ||
_sandbox__subcmd__execution__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox execution status commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__file_commands] )) ||
_sandbox__subcmd__file_commands() {
    local commands; commands=(
'put:Put a file into a session'\''s workspace' \
'get:Get a file from a session'\''s workspace' \
'list:List a directory of a session'\''s workspace, by name' \
'ls:List a directory of a session'\''s workspace, by name' \
'remove:Remove files from a session'\''s workspace, and directories with all that is in them' \
'rm:Remove files from a session'\''s workspace, and directories with all that is in them' \
'archive:Get a directory of a session'\''s workspace as a tar archive' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox file commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__file__subcmd__archive_commands] )) ||
_sandbox__subcmd__file__subcmd__archive_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox file archive commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__file__subcmd__get_commands] )) ||
_sandbox__subcmd__file__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox file get commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__file__subcmd__help_commands] )) ||
_sandbox__subcmd__file__subcmd__help_commands() {
    local commands; commands=(
'put:Put a file into a session'\''s workspace' \
'get:Get a file from a session'\''s workspace' \
'list:List a directory of a session'\''s workspace, by name' \
'remove:Remove files from a session'\''s workspace, and directories with all that is in them' \
'archive:Get a directory of a session'\''s workspace as a tar archive' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox file help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__file__subcmd__help__subcmd__archive_commands] )) ||
_sandbox__subcmd__file__subcmd__help__subcmd__archive_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox file help archive commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__file__subcmd__help__subcmd__get_commands] )) ||
_sandbox__subcmd__file__subcmd__help__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox file help get commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__file__subcmd__help__subcmd__help_commands] )) ||
_sandbox__subcmd__file__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox file help help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__file__subcmd__help__subcmd__list_commands] )) ||
_sandbox__subcmd__file__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox file help list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__file__subcmd__help__subcmd__put_commands] )) ||
_sandbox__subcmd__file__subcmd__help__subcmd__put_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox file help put commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__file__subcmd__help__subcmd__remove_commands] )) ||
_sandbox__subcmd__file__subcmd__help__subcmd__remove_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox file help remove commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__file__subcmd__list_commands] )) ||
_sandbox__subcmd__file__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox file list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__file__subcmd__put_commands] )) ||
_sandbox__subcmd__file__subcmd__put_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox file put commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__file__subcmd__remove_commands] )) ||
_sandbox__subcmd__file__subcmd__remove_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox file remove commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__fork_commands] )) ||
_sandbox__subcmd__fork_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox fork commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__gc_commands] )) ||
_sandbox__subcmd__gc_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox gc commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__health_commands] )) ||
_sandbox__subcmd__health_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox health commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help_commands] )) ||
_sandbox__subcmd__help_commands() {
    local commands; commands=(
'create:Make a sandbox of a directory' \
'try:Run a command on a copy of the current directory, look, then decide' \
'list:List sandboxes, newest first' \
'enter:Open an interactive shell in a sandbox' \
'run:Run a command in a sandbox' \
'exec:Run a command in a sandbox, or code in a session of a server' \
'diff:Show what changed in a sandbox' \
'promote:Apply a sandbox'\''s changes to its source' \
'discard:Delete a sandbox and the changes in it' \
'sync:Bring the source'\''s changes into a sandbox' \
'fork:Make a sandbox of a sandbox' \
'snapshot:Save a checkpoint inside a sandbox, or list them' \
'rollback:Take a sandbox back to a checkpoint' \
'pause:Freeze the processes of a sandbox' \
'resume:Let the processes of a paused sandbox go on' \
'info:Show everything about a sandbox' \
'path:Print a host path to a sandbox'\''s files, where there is one' \
'history:Show every operation on every sandbox' \
'gc:Clean up what nobody needs any more' \
'serve:Serve sessions over HTTP' \
'session:Make, look at and end sessions of a server' \
'execution:Look at what was run in sessions, and end what runs' \
'file:Put files into a session'\''s workspace, and get them out' \
'template:Make, look at and change what sessions are made from' \
'key:Make, list and revoke a server'\''s API keys' \
'node:Look at the machines that sessions run on, and take one out of service' \
'health:Show how a server and its parts are' \
'doctor:Show what this host offers, by trying it' \
'version:Print the version' \
'completions:Print a completion script for your shell' \
'man:Print the manual page, or write one for every command' \
'__complete-names:' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd____complete-names_commands] )) ||
_sandbox__subcmd__help__subcmd____complete-names_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help __complete-names commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__completions_commands] )) ||
_sandbox__subcmd__help__subcmd__completions_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help completions commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__create_commands] )) ||
_sandbox__subcmd__help__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help create commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__diff_commands] )) ||
_sandbox__subcmd__help__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help diff commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__discard_commands] )) ||
_sandbox__subcmd__help__subcmd__discard_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help discard commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__doctor_commands] )) ||
_sandbox__subcmd__help__subcmd__doctor_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help doctor commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__enter_commands] )) ||
_sandbox__subcmd__help__subcmd__enter_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help enter commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__exec_commands] )) ||
_sandbox__subcmd__help__subcmd__exec_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help exec commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__execution_commands] )) ||
_sandbox__subcmd__help__subcmd__execution_commands() {
    local commands; commands=(
'list:List a session'\''s executions, newest first' \
'get:Show everything about an execution, its code and its event' \
'status:Show where an execution is in its life' \
'result:Show what became of an execution, as if it had just been run' \
'cancel:End an execution, with everything that it started' \
    )
    _describe -t commands 'sandbox help execution commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__execution__subcmd__cancel_commands] )) ||
_sandbox__subcmd__help__subcmd__execution__subcmd__cancel_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help execution cancel commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__execution__subcmd__get_commands] )) ||
_sandbox__subcmd__help__subcmd__execution__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help execution get commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__execution__subcmd__list_commands] )) ||
_sandbox__subcmd__help__subcmd__execution__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help execution list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__execution__subcmd__result_commands] )) ||
_sandbox__subcmd__help__subcmd__execution__subcmd__result_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help execution result commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__execution__subcmd__status_commands] )) ||
_sandbox__subcmd__help__subcmd__execution__subcmd__status_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help execution status commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__file_commands] )) ||
_sandbox__subcmd__help__subcmd__file_commands() {
    local commands; commands=(
'put:Put a file into a session'\''s workspace' \
'get:Get a file from a session'\''s workspace' \
'list:List a directory of a session'\''s workspace, by name' \
'remove:Remove files from a session'\''s workspace, and directories with all that is in them' \
'archive:Get a directory of a session'\''s workspace as a tar archive' \
    )
    _describe -t commands 'sandbox help file commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__file__subcmd__archive_commands] )) ||
_sandbox__subcmd__help__subcmd__file__subcmd__archive_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help file archive commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__file__subcmd__get_commands] )) ||
_sandbox__subcmd__help__subcmd__file__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help file get commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__file__subcmd__list_commands] )) ||
_sandbox__subcmd__help__subcmd__file__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help file list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__file__subcmd__put_commands] )) ||
_sandbox__subcmd__help__subcmd__file__subcmd__put_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help file put commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__file__subcmd__remove_commands] )) ||
_sandbox__subcmd__help__subcmd__file__subcmd__remove_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help file remove commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__fork_commands] )) ||
_sandbox__subcmd__help__subcmd__fork_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help fork commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__gc_commands] )) ||
_sandbox__subcmd__help__subcmd__gc_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help gc commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__health_commands] )) ||
_sandbox__subcmd__help__subcmd__health_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help health commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__help_commands] )) ||
_sandbox__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__history_commands] )) ||
_sandbox__subcmd__help__subcmd__history_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help history commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__info_commands] )) ||
_sandbox__subcmd__help__subcmd__info_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help info commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__key_commands] )) ||
_sandbox__subcmd__help__subcmd__key_commands() {
    local commands; commands=(
'create:Make a key' \
'list:List keys, newest first, revoked ones too' \
'revoke:Make a key open nothing from now on' \
    )
    _describe -t commands 'sandbox help key commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__key__subcmd__create_commands] )) ||
_sandbox__subcmd__help__subcmd__key__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help key create commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__key__subcmd__list_commands] )) ||
_sandbox__subcmd__help__subcmd__key__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help key list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__key__subcmd__revoke_commands] )) ||
_sandbox__subcmd__help__subcmd__key__subcmd__revoke_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help key revoke commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__list_commands] )) ||
_sandbox__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__man_commands] )) ||
_sandbox__subcmd__help__subcmd__man_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help man commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__node_commands] )) ||
_sandbox__subcmd__help__subcmd__node_commands() {
    local commands; commands=(
'list:List nodes, by name' \
'drain:Let a node take no new sessions; those it has go on' \
    )
    _describe -t commands 'sandbox help node commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__node__subcmd__drain_commands] )) ||
_sandbox__subcmd__help__subcmd__node__subcmd__drain_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help node drain commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__node__subcmd__list_commands] )) ||
_sandbox__subcmd__help__subcmd__node__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help node list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__path_commands] )) ||
_sandbox__subcmd__help__subcmd__path_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help path commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__pause_commands] )) ||
_sandbox__subcmd__help__subcmd__pause_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help pause commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__promote_commands] )) ||
_sandbox__subcmd__help__subcmd__promote_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help promote commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__resume_commands] )) ||
_sandbox__subcmd__help__subcmd__resume_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help resume commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__rollback_commands] )) ||
_sandbox__subcmd__help__subcmd__rollback_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help rollback commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__run_commands] )) ||
_sandbox__subcmd__help__subcmd__run_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help run commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__serve_commands] )) ||
_sandbox__subcmd__help__subcmd__serve_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help serve commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__session_commands] )) ||
_sandbox__subcmd__help__subcmd__session_commands() {
    local commands; commands=(
'create:Make a session' \
'list:List sessions, newest first' \
'get:Show everything about a session' \
'delete:End sessions, with everything that runs in them' \
'renew:Let a session live for its time from now on' \
'pause:Stop everything in a session where it is' \
'resume:Let a session that was paused go on' \
'fork:Make a session like another one, whose workspace starts as a copy of its' \
'changes:Show what a session'\''s workspace has that it did not start with' \
'events:Show what happens to a session, as it happens' \
    )
    _describe -t commands 'sandbox help session commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__session__subcmd__changes_commands] )) ||
_sandbox__subcmd__help__subcmd__session__subcmd__changes_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help session changes commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__session__subcmd__create_commands] )) ||
_sandbox__subcmd__help__subcmd__session__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help session create commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__session__subcmd__delete_commands] )) ||
_sandbox__subcmd__help__subcmd__session__subcmd__delete_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help session delete commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__session__subcmd__events_commands] )) ||
_sandbox__subcmd__help__subcmd__session__subcmd__events_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help session events commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__session__subcmd__fork_commands] )) ||
_sandbox__subcmd__help__subcmd__session__subcmd__fork_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help session fork commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__session__subcmd__get_commands] )) ||
_sandbox__subcmd__help__subcmd__session__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help session get commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__session__subcmd__list_commands] )) ||
_sandbox__subcmd__help__subcmd__session__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help session list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__session__subcmd__pause_commands] )) ||
_sandbox__subcmd__help__subcmd__session__subcmd__pause_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help session pause commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__session__subcmd__renew_commands] )) ||
_sandbox__subcmd__help__subcmd__session__subcmd__renew_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help session renew commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__session__subcmd__resume_commands] )) ||
_sandbox__subcmd__help__subcmd__session__subcmd__resume_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help session resume commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__snapshot_commands] )) ||
_sandbox__subcmd__help__subcmd__snapshot_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help snapshot commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__sync_commands] )) ||
_sandbox__subcmd__help__subcmd__sync_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help sync commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__template_commands] )) ||
_sandbox__subcmd__help__subcmd__template_commands() {
    local commands; commands=(
'create:Make a template' \
'list:List templates, newest first' \
'get:Show everything about a template' \
'update:Change a template' \
'delete:Delete a template that no live session uses' \
'seed:Make the templates that every server starts with, where they are missing' \
    )
    _describe -t commands 'sandbox help template commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__template__subcmd__create_commands] )) ||
_sandbox__subcmd__help__subcmd__template__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help template create commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__template__subcmd__delete_commands] )) ||
_sandbox__subcmd__help__subcmd__template__subcmd__delete_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help template delete commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__template__subcmd__get_commands] )) ||
_sandbox__subcmd__help__subcmd__template__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help template get commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__template__subcmd__list_commands] )) ||
_sandbox__subcmd__help__subcmd__template__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help template list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__template__subcmd__seed_commands] )) ||
_sandbox__subcmd__help__subcmd__template__subcmd__seed_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help template seed commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__template__subcmd__update_commands] )) ||
_sandbox__subcmd__help__subcmd__template__subcmd__update_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help template update commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__try_commands] )) ||
_sandbox__subcmd__help__subcmd__try_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help try commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__help__subcmd__version_commands] )) ||
_sandbox__subcmd__help__subcmd__version_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox help version commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__history_commands] )) ||
_sandbox__subcmd__history_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox history commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__info_commands] )) ||
_sandbox__subcmd__info_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox info commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__key_commands] )) ||
_sandbox__subcmd__key_commands() {
    local commands; commands=(
'create:Make a key' \
'list:List keys, newest first, revoked ones too' \
'ls:List keys, newest first, revoked ones too' \
'revoke:Make a key open nothing from now on' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox key commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__key__subcmd__create_commands] )) ||
_sandbox__subcmd__key__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox key create commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__key__subcmd__help_commands] )) ||
_sandbox__subcmd__key__subcmd__help_commands() {
    local commands; commands=(
'create:Make a key' \
'list:List keys, newest first, revoked ones too' \
'revoke:Make a key open nothing from now on' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox key help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__key__subcmd__help__subcmd__create_commands] )) ||
_sandbox__subcmd__key__subcmd__help__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox key help create commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__key__subcmd__help__subcmd__help_commands] )) ||
_sandbox__subcmd__key__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox key help help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__key__subcmd__help__subcmd__list_commands] )) ||
_sandbox__subcmd__key__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox key help list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__key__subcmd__help__subcmd__revoke_commands] )) ||
_sandbox__subcmd__key__subcmd__help__subcmd__revoke_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox key help revoke commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__key__subcmd__list_commands] )) ||
_sandbox__subcmd__key__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox key list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__key__subcmd__revoke_commands] )) ||
_sandbox__subcmd__key__subcmd__revoke_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox key revoke commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__list_commands] )) ||
_sandbox__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__man_commands] )) ||
_sandbox__subcmd__man_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox man commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__node_commands] )) ||
_sandbox__subcmd__node_commands() {
    local commands; commands=(
'list:List nodes, by name' \
'ls:List nodes, by name' \
'drain:Let a node take no new sessions; those it has go on' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox node commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__node__subcmd__drain_commands] )) ||
_sandbox__subcmd__node__subcmd__drain_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox node drain commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__node__subcmd__help_commands] )) ||
_sandbox__subcmd__node__subcmd__help_commands() {
    local commands; commands=(
'list:List nodes, by name' \
'drain:Let a node take no new sessions; those it has go on' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox node help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__node__subcmd__help__subcmd__drain_commands] )) ||
_sandbox__subcmd__node__subcmd__help__subcmd__drain_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox node help drain commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__node__subcmd__help__subcmd__help_commands] )) ||
_sandbox__subcmd__node__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox node help help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__node__subcmd__help__subcmd__list_commands] )) ||
_sandbox__subcmd__node__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox node help list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__node__subcmd__list_commands] )) ||
_sandbox__subcmd__node__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox node list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__path_commands] )) ||
_sandbox__subcmd__path_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox path commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__pause_commands] )) ||
_sandbox__subcmd__pause_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox pause commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__promote_commands] )) ||
_sandbox__subcmd__promote_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox promote commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__resume_commands] )) ||
_sandbox__subcmd__resume_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox resume commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__rollback_commands] )) ||
_sandbox__subcmd__rollback_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox rollback commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__run_commands] )) ||
_sandbox__subcmd__run_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox run commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__serve_commands] )) ||
_sandbox__subcmd__serve_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox serve commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session_commands] )) ||
_sandbox__subcmd__session_commands() {
    local commands; commands=(
'create:Make a session' \
'list:List sessions, newest first' \
'ls:List sessions, newest first' \
'get:Show everything about a session' \
'delete:End sessions, with everything that runs in them' \
'rm:End sessions, with everything that runs in them' \
'renew:Let a session live for its time from now on' \
'pause:Stop everything in a session where it is' \
'resume:Let a session that was paused go on' \
'fork:Make a session like another one, whose workspace starts as a copy of its' \
'changes:Show what a session'\''s workspace has that it did not start with' \
'events:Show what happens to a session, as it happens' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox session commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__changes_commands] )) ||
_sandbox__subcmd__session__subcmd__changes_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session changes commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__create_commands] )) ||
_sandbox__subcmd__session__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session create commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__delete_commands] )) ||
_sandbox__subcmd__session__subcmd__delete_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session delete commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__events_commands] )) ||
_sandbox__subcmd__session__subcmd__events_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session events commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__fork_commands] )) ||
_sandbox__subcmd__session__subcmd__fork_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session fork commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__get_commands] )) ||
_sandbox__subcmd__session__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session get commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__help_commands] )) ||
_sandbox__subcmd__session__subcmd__help_commands() {
    local commands; commands=(
'create:Make a session' \
'list:List sessions, newest first' \
'get:Show everything about a session' \
'delete:End sessions, with everything that runs in them' \
'renew:Let a session live for its time from now on' \
'pause:Stop everything in a session where it is' \
'resume:Let a session that was paused go on' \
'fork:Make a session like another one, whose workspace starts as a copy of its' \
'changes:Show what a session'\''s workspace has that it did not start with' \
'events:Show what happens to a session, as it happens' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox session help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__help__subcmd__changes_commands] )) ||
_sandbox__subcmd__session__subcmd__help__subcmd__changes_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session help changes commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__help__subcmd__create_commands] )) ||
_sandbox__subcmd__session__subcmd__help__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session help create commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__help__subcmd__delete_commands] )) ||
_sandbox__subcmd__session__subcmd__help__subcmd__delete_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session help delete commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__help__subcmd__events_commands] )) ||
_sandbox__subcmd__session__subcmd__help__subcmd__events_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session help events commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__help__subcmd__fork_commands] )) ||
_sandbox__subcmd__session__subcmd__help__subcmd__fork_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session help fork commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__help__subcmd__get_commands] )) ||
_sandbox__subcmd__session__subcmd__help__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session help get commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__help__subcmd__help_commands] )) ||
_sandbox__subcmd__session__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session help help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__help__subcmd__list_commands] )) ||
_sandbox__subcmd__session__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session help list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__help__subcmd__pause_commands] )) ||
_sandbox__subcmd__session__subcmd__help__subcmd__pause_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session help pause commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__help__subcmd__renew_commands] )) ||
_sandbox__subcmd__session__subcmd__help__subcmd__renew_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session help renew commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__help__subcmd__resume_commands] )) ||
_sandbox__subcmd__session__subcmd__help__subcmd__resume_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session help resume commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__list_commands] )) ||
_sandbox__subcmd__session__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__pause_commands] )) ||
_sandbox__subcmd__session__subcmd__pause_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session pause commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__renew_commands] )) ||
_sandbox__subcmd__session__subcmd__renew_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session renew commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__session__subcmd__resume_commands] )) ||
_sandbox__subcmd__session__subcmd__resume_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox session resume commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__snapshot_commands] )) ||
_sandbox__subcmd__snapshot_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox snapshot commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__sync_commands] )) ||
_sandbox__subcmd__sync_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox sync commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template_commands] )) ||
_sandbox__subcmd__template_commands() {
    local commands; commands=(
'create:Make a template' \
'list:List templates, newest first' \
'ls:List templates, newest first' \
'get:Show everything about a template' \
'update:Change a template' \
'delete:Delete a template that no live session uses' \
'rm:Delete a template that no live session uses' \
'seed:Make the templates that every server starts with, where they are missing' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox template commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__create_commands] )) ||
_sandbox__subcmd__template__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox template create commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__delete_commands] )) ||
_sandbox__subcmd__template__subcmd__delete_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox template delete commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__get_commands] )) ||
_sandbox__subcmd__template__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox template get commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__help_commands] )) ||
_sandbox__subcmd__template__subcmd__help_commands() {
    local commands; commands=(
'create:Make a template' \
'list:List templates, newest first' \
'get:Show everything about a template' \
'update:Change a template' \
'delete:Delete a template that no live session uses' \
'seed:Make the templates that every server starts with, where they are missing' \
'help:Print this message or the help of the given subcommand(s)' \
    )
    _describe -t commands 'sandbox template help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__help__subcmd__create_commands] )) ||
_sandbox__subcmd__template__subcmd__help__subcmd__create_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox template help create commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__help__subcmd__delete_commands] )) ||
_sandbox__subcmd__template__subcmd__help__subcmd__delete_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox template help delete commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__help__subcmd__get_commands] )) ||
_sandbox__subcmd__template__subcmd__help__subcmd__get_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox template help get commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__help__subcmd__help_commands] )) ||
_sandbox__subcmd__template__subcmd__help__subcmd__help_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox template help help commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__help__subcmd__list_commands] )) ||
_sandbox__subcmd__template__subcmd__help__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox template help list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__help__subcmd__seed_commands] )) ||
_sandbox__subcmd__template__subcmd__help__subcmd__seed_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox template help seed commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__help__subcmd__update_commands] )) ||
_sandbox__subcmd__template__subcmd__help__subcmd__update_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox template help update commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__list_commands] )) ||
_sandbox__subcmd__template__subcmd__list_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox template list commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__seed_commands] )) ||
_sandbox__subcmd__template__subcmd__seed_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox template seed commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__template__subcmd__update_commands] )) ||
_sandbox__subcmd__template__subcmd__update_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox template update commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__try_commands] )) ||
_sandbox__subcmd__try_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox try commands' commands "$@"
}
(( $+functions[_sandbox__subcmd__version_commands] )) ||
_sandbox__subcmd__version_commands() {
    local commands; commands=()
    _describe -t commands 'sandbox version commands' commands "$@"
}

if [ "$funcstack[1]" = "_sandbox" ]; then
    _sandbox "$@"
else
    compdef _sandbox sandbox
fi