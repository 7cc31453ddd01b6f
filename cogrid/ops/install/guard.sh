# Takes back what an installation has done, when that fails: because it is told to (the file "back"),
# because the SSH connection that it came by is gone, or because nothing was heard of it for too long.
#
#   guard.sh DIRECTORY         watch until it is over: a service of its own, so that no logout ends it
#   guard.sh DIRECTORY now     take it back at once: what an earlier one, ended by a reboot, has left
#
# In DIRECTORY: undo/NN-STEP, sh texts that take a step back, made before the step, good to be run
# twice; step, the process group of the step at work; session, the process of the connection with its
# start time; until, the second since boot at which it is taken back unless it is moved on. Either
# side ends it by renaming "undo", which only one of them can.
directory=$1

now() {
    read -r up _ </proc/uptime
    echo "${up%%.*}"
}

started() { # in ticks since boot; with its number it names one process for ever
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20
}

cut_off() {
    [ -s "$directory/session" ] || return 1
    read -r process since <"$directory/session"
    [ "$(started "$process")" != "$since" ]
}

late() {
    read -r until <"$directory/until" || return 1
    [ "$(now)" -ge "$until" ]
}

end_step() {
    [ -s "$directory/step" ] || return 0
    read -r group <"$directory/step"
    kill -TERM -"$group" 2>/dev/null || return 0
    sleep 0.5
    kill -KILL -"$group" 2>/dev/null
    return 0
}

take_back() {
    [ -d "$directory/undoing" ] || mv "$directory/undo" "$directory/undoing" 2>/dev/null || exit 0
    end_step
    : >"$directory/failed"
    for name in $(ls -r "$directory/undoing"); do
        if sh "$directory/undoing/$name" >>"$directory/log" 2>&1; then
            rm -f "$directory/undoing/$name"
        else
            echo "${name#*-}" >>"$directory/failed"
        fi
    done
    [ -s "$directory/failed" ] && exit 1
    rm -rf "$directory"
    exit 0
}

[ "${2-}" = now ] && take_back
while [ -d "$directory/undo" ]; do
    if [ -e "$directory/back" ] || cut_off || late; then take_back; fi
    sleep 0.2
done
