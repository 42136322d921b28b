# Looks after one server: starts it, ends it, and leaves nothing when its owner is gone.
#
# The owner holds the other end of our standard input. Each line it writes is an order, each order
# is answered by one line. When it closes that end, by will or by being killed, the server goes and
# its directory with it. Everything the server starts inherits a lock on `alive`, so that whoever
# gets the lock alone knows that all of them have ended.
#
# usage: sh supervise.sh DIRECTORY PROGRAM [ARGUMENT…]
directory=$1
shift
server=

end() {
    [ -n "$server" ] || return 0
    kill -s "$1" "$server"
    wait "$server"
    server=
    flock --exclusive "$directory/alive" true
}

while read -r order; do
    case $order in
    start)
        flock --no-fork --shared "$directory/alive" "$@" </dev/null >"$directory/log" 2>&1 &
        server=$!
        echo "$server"
        ;;
    *)
        end "$order"
        echo ended
        ;;
    esac
done 2>/dev/null
end KILL 2>/dev/null
rm -rf "$directory"
