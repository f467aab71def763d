#!/bin/sh
# Copies Node.js into the folder $1, with the libraries that it loads and nothing else. The image then has no shell, no package
# manager and no other program. It works on every base that has dpkg, on each architecture.
set -eu
target=$1
node=$(readlink -f "$(command -v node)")
mkdir -p "$target/usr/local/bin" "$target/etc" "$target/tmp" "$target/var/lib/dpkg/status.d"
chmod 1777 "$target/tmp"
cp "$node" "$target/usr/local/bin/node"

# The dynamic loader searches the folders of these paths without a configuration.
libraries=$(ldd "$node" | grep -o '/[^ ]*')
for library in $libraries; do
  mkdir -p "$target$(dirname "$library")"
  cp -L "$library" "$target$library"
  # Scanners find the packages here, as in distroless images. The licences stay too.
  package=$(dpkg --search "$library" "$(readlink -f "$library")" 2>/dev/null | grep -v '^diversion ' | sed 's/[:,].*//;q' || true)
  [ -n "$package" ] || { echo "no package has $library" >&2; exit 1; }
  dpkg --status "$package" >"$target/var/lib/dpkg/status.d/$package"
  mkdir -p "$target/usr/share/doc/$package"
  cp -L "/usr/share/doc/$package/copyright" "$target/usr/share/doc/$package/"
done

cp -L /etc/os-release "$target/etc/"
printf 'root:x:0:0:root:/:/sbin/nologin\nnode:x:1000:1000:node:/tmp:/sbin/nologin\n' >"$target/etc/passwd"
printf 'root:x:0:\nnode:x:1000:\n' >"$target/etc/group"
printf 'hosts: files dns\n' >"$target/etc/nsswitch.conf"
