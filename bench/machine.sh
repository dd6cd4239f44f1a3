# Sourced by the benches: when and on which machine a table was made.
#   made_on     prints "2026-11-21, 2 CPUs (model), Linux 6.18, load 0.5"
made_on() {
    cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
    echo "$(date -u +%F), $(nproc) CPUs (${cpu:-unknown}), Linux $(uname -r), load $(cut -d' ' -f1 /proc/loadavg)"
}
