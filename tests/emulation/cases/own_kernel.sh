# A kernel of the user's own: here the cached one, given by hand.
emulate 0 "$small" --dry-run
cache=${XDG_CACHE_HOME:-$HOME/.cache}/gdr
kernel=$(ls -d "$cache"/kernel-* | head -n 1)
release=$(ls "$kernel/lib/modules")
# Links to its files, and to the headers, which a user's kernel has under this name.
cp -rs "$kernel/lib/modules/$release" "$work/"
rm -f "$release/build"
export XDG_CACHE_HOME=$work/cache
mkdir -p cache/gdr/busybox/bin && cp "$kernel/bin/busybox" cache/gdr/busybox/bin/
emulate 0 "$small" --kernel "$kernel/boot/vmlinuz-$release" --modules "$release" -- sh -c 'uname -r; ibv_devices; [ ! -e /dev/gdr-gpu0 ]'
said "$release/build does not exist: guests have no /dev/gdr-gpuK"
ln -s "$kernel/usr/src/linux-headers-$release" "$release/build"
emulate 0 "$small" --kernel "$kernel/boot/vmlinuz-$release" --modules "$release" -- sh -c 'uname -r; ibv_devices; ls /dev/gdr-gpu0'
said "^h0| $release$"
said '^h0|  *rxe0'
