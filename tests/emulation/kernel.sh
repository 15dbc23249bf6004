#!/usr/bin/env bash
# Kernel and modules come into the cache before the other tests, whose times are for guests alone. Then one small guest is timed: where the
# machine is slow or busy, so are all guests, and the other tests wait as many times longer (FILE). A hang is a failure all the same, a little
# later: kernel.sh GDR SOURCE FILE
set -euo pipefail
gdr=$1 small=$2/topologies/servers/sandybridge-one-socket.json file=$3
"$gdr" emulate "$small" --timeout 10min -- true
begun=$(date +%s%N)
"$gdr" emulate "$small" --timeout 10min -- true
took=$((($(date +%s%N) - begun) / 1000000))
usual=8000 # milliseconds, translated (TCG) on an idle core
times=$(((took + usual - 1) / usual))
[ $times -le 6 ] || times=6
echo $times >"$file"
echo "a guest takes $took ms: limits are $times times the usual ones"
