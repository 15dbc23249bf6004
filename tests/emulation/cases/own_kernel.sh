# A kernel of one's own: here the one of the cache, given by hand.
emulate 0 "$small" -- true
cache=${XDG_CACHE_HOME:-$HOME/.cache}/gdr
kernel=$(ls -d "$cache"/kernel-* | head -n 1)
release=$(ls "$kernel/lib/modules")
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
mkdir -p cache/gdr/busybox/bin && cp "$kernel/bin/busybox" cache/gdr/busybox/bin/
emulate 0 "$small" --kernel "$kernel/boot/vmlinuz-$release" --modules "$kernel/lib/modules/$release" -- sh -c 'uname -r; ibv_devices; ls /dev/gdr-gpu0'
said "^h0| $release$"
said '^h0|  *rxe0'
