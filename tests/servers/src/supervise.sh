# Looks after one server: makes its data, starts it, ends it, and leaves nothing when its owner is gone.
#
# The owner holds the other end of our standard input. Each line it writes is an order, each order
# is answered by one line. When it closes that end, by will or by being killed, the server goes and
# its directory with it. Everything that is started inherits a lock on `alive`, so that whoever gets
# the lock alone knows that all of it has ended.
#
#   start N   starts the command of the next N lines; answers with its process number
#   SIGNAL    ends it by this signal, if it still runs; answers with its status
#
# usage: sh supervise.sh DIRECTORY
directory=$1
process=
# To answer an owner who is gone must not be the end of us. (`:` and not `''`: what we start is to have
# its own way with these.)
trap : PIPE HUP INT TERM

end() {
    [ -n "$process" ] || return 0
    kill -s "$1" "$process"
    wait "$process"
    status=$?
    process=
    flock --exclusive "$directory/alive" true
    return "$status"
}

while read -r order count; do
    case $order in
    start)
        set --
        while [ $# -lt "$count" ]; do
            IFS= read -r argument
            set -- "$@" "$argument"
        done
        flock --no-fork --shared "$directory/alive" "$@" </dev/null >"$directory/log" 2>&1 &
        process=$!
        echo "$process"
        ;;
    *)
        end "$order"
        echo "$?"
        ;;
    esac
done 2>/dev/null
end KILL 2>/dev/null
rm -rf "$directory"
