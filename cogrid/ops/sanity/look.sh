# What a machine says of itself and of cogrid's units on it. Reads only; every part is bounded.
# $1: a word that begins each part's first line and that nothing else knows.
# $2: the scope of further units, $3 and so on: their names.
# Nobody's command line is printed: it may hold a password.
# Parts: clock, who, host, init, python, memory, disk, gpu, programs, stray, engines, and for each
# unit, in the scope (system or user) that stands before its name: show, text, version, bus, files, rights,
# journal.
n=$1 scope=$2
shift 2
export SYSTEMD_COLORS=0 SYSTEMD_PAGER=cat XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
as_root=
[ "$(id -u)" = 0 ] || { sudo -n true 2>/dev/null && as_root='sudo -n'; }

part() { printf '\n%s %s\n' "$n" "$*"; }

part clock
date +%s.%N
part who
printf '%s\n%s\n%s\n' "$(id -un)" "$(id -u)" "${as_root:+sudo}"
part host
uname -n
uname -sm
part init
cat /proc/1/comm 2>/dev/null
part python
for python in python3 python3.14 python3.13 python3.12 python3.11; do
    command -v "$python" >/dev/null 2>&1 && "$python" -V 2>&1
done
part memory
grep -E '^Mem(Total|Available):' /proc/meminfo 2>/dev/null
part disk
for place in / /opt /var/lib /usr/share/ollama "$HOME"; do
    [ -d "$place" ] && df -Pk "$place" 2>/dev/null | tail -n 1
done
part gpu
for sign in /proc/driver/nvidia/gpus/* /dev/nvidia0 /dev/nvhost-gpu /dev/kfd; do
    [ -e "$sign" ] && echo "$sign"
done
part programs
for program in "$(command -v cogrid)" /opt/cogrid/current/bin/cogrid \
    ~/.local/share/cogrid/current/bin/cogrid ~/.local/bin/cogrid ~/venv/bin/cogrid ~/.venv/bin/cogrid; do
    [ -x "$program" ] && printf '%s\n' "$program"
done
for process in /proc/[0-9]*; do
    tr '\000' '\n' 2>/dev/null <"$process/cmdline" | head -n 2 | grep '^/.*/cogrid$'
done
part stray
for process in /proc/[0-9]*; do
    case $(tr '\000' ' ' 2>/dev/null <"$process/cmdline") in
        *'cogrid worker run'* | *'cogrid.cli.main worker run'*) what='cogrid worker run' ;;
        *python*worker.py*) what=worker.py ;;
        *) continue ;;
    esac
    case $(cat "$process/cgroup" 2>/dev/null) in
        *user@*.service*.service*) ;;
        *user.slice*) printf '%s %s %s\n' "${process#/proc/}" "$(stat -c %U "$process")" "$what" ;;
    esac
done

command -v systemctl >/dev/null 2>&1 || { part clock; date +%s.%N; exit 0; }

units() { # $1: what tells systemctl, $2: a pattern of names
    {
        systemctl $1 list-unit-files --no-legend --plain --no-pager "$2" 2>/dev/null
        systemctl $1 list-units --all --no-legend --plain --no-pager "$2" 2>/dev/null
    } | cut -d' ' -f1 | grep -v '@\.service$' | sort -u
}

readable() {
    [ "$(id -u)" = 0 ] || [ -n "$as_root" ] && return
    id=$(cat /etc/machine-id)
    for file in "/var/log/journal/$id/$1" "/run/log/journal/$id/$1" "/run/log/journal/$id/system.journal"; do
        [ -r "$file" ] && return
    done
    return 1
}

bus() {
    object=$(busctl $1 call org.freedesktop.systemd1 /org/freedesktop/systemd1 \
        org.freedesktop.systemd1.Manager LoadUnit s "$2" 2>/dev/null | cut -d'"' -f2)
    for property in ExecStart Environment EnvironmentFiles User Group WorkingDirectory; do
        busctl $1 --json=short get-property org.freedesktop.systemd1 "$object" \
            org.freedesktop.systemd1.Service $property 2>/dev/null || echo null
    done
}

look() { # $1: scope, $2: what tells systemctl, $3: unit
    part show "$1" "$3"
    systemctl $2 show --no-pager "$3" 2>/dev/null
    fragment=$(systemctl $2 show --no-pager --property=FragmentPath --value "$3" 2>/dev/null)
    part text "$1" "$3"
    [ -n "$fragment" ] && cat "$fragment" 2>/dev/null
    part version "$1" "$3"
    program=$(systemctl $2 show --no-pager --property=ExecStart --value "$3" 2>/dev/null |
        sed -n '1s/^{ path=\(.*\) ; argv\[\]=.*/\1/p')
    case $program in */cogrid) timeout 10 "$program" --version 2>/dev/null ;; esac
    part bus "$1" "$3"
    bus "$2" "$3"
    part files "$1" "$3"
    systemctl $2 show --no-pager --property=EnvironmentFiles --value "$3" 2>/dev/null |
        sed 's/ (ignore_errors=[a-z]*)$//' | while read -r file; do
            [ -n "$file" ] && $as_root stat -c '%a %U %n' "$file" 2>/dev/null
        done
    part rights "$1" "$3"
    if [ "$1" = user ]; then journal="user-$(id -u).journal" root=; else journal=system.journal root=$as_root; fi
    readable "$journal" && echo readable
    part journal "$1" "$3"
    $root journalctl $2 --unit "$3" --lines 8 --no-pager --quiet --output json \
        --output-fields MESSAGE,PRIORITY,SYSLOG_IDENTIFIER 2>/dev/null
}

ours() { # $1: what tells systemctl, $2: where units of our making stand, whatever their name
    {
        units "$1" 'cogrid-*.service'
        grep -l '^# cogrid-unit: ' "$2"/*.service 2>/dev/null | sed 's,.*/,,' | grep -v '@\.service$'
    } | sort -u
}

part engines
units '' 'ollama*.service'
units '' 'llama*.service'
for unit in "$@"; do look "$scope" "$([ "$scope" = system ] || echo --user)" "$unit"; done
for unit in $(ours '' /etc/systemd/system); do look system '' "$unit"; done
[ "$(id -u)" = 0 ] || for unit in $(ours --user "$HOME/.config/systemd/user"); do look user --user "$unit"; done
part clock
date +%s.%N
