#!/bin/sh
# Tries both installers in a new Debian that has no Python, as a person who is not root: installed,
# opened under Xvfb, the embedded pair run by keyboard, a report exported, removed without leftovers.
#
#   packaging/linux/clean_root.sh dist/foretoken_*.deb dist/foretoken-*.run [bookworm]
#
# Needs root and debootstrap, and a mirror of Debian as apt is configured to reach it.
set -eu

deb=$(realpath "$1")
run=$(realpath "$2")
suite="${3:-bookworm}"
root=$(mktemp -d /var/tmp/foretoken-root-XXXXXX)
chmod 755 "$root"

leave() {
  umount "$root/dev/shm" "$root/dev" "$root/proc" 2>/dev/null || true
  rm -rf --one-file-system "$root"
}
trap leave EXIT

inside() {
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive "$@"
}
person() { inside HOME=/home/person su person -s /bin/sh -c "$1"; }
files() { (cd "$root" && find etc home opt usr var -not -path "var/lib/dpkg/*" \
  -not -path "var/cache/*" -not -path "var/log/*" | sort); }

mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' \
  /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
echo "== a new $suite =="
debootstrap --variant=minbase "$suite" "$root" "$mirror" > "$root.log" 2>&1 ||
  { tail -n 20 "$root.log"; exit 1; }
rm -f "$root.log"
cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
inside apt-get update -qq
inside apt-get install -qq --no-install-recommends \
  xvfb xdotool xauth xz-utils > /dev/null 2>&1
inside useradd --create-home person
if inside sh -c 'command -v python3'; then echo "There is a Python in it."; exit 1; fi

# By keyboard, as a person would: Run, then Export once it is offered, then the name of the file.
cat > "$root/usr/local/bin/try-window" <<'END'
#!/bin/sh
set -eu
report="$1"; shift
seen() { xdotool search --onlyvisible --name "^$1" 2>/dev/null | head -n 1; }
"$@" & program=$!
for _ in $(seq 240); do [ -n "$(seen Foretoken)" ] && break; sleep 0.25; done
window=$(seen Foretoken)
[ -n "$window" ] || { echo "no window"; exit 1; }
sleep 5
xdotool windowfocus --sync "$window" key ctrl+Return
for _ in $(seq 150); do
  sleep 2; xdotool key ctrl+e; sleep 1
  [ -n "$(seen Export)" ] && break
done
xdotool windowfocus --sync "$(seen Export)" key ctrl+a type "$report"
xdotool key Return
for _ in $(seq 60); do [ -s "$report" ] && break; sleep 0.5; done
grep -q '"outcome": *"finished"' "$report"
kill -INT $program
wait $program
END
chmod 755 "$root/usr/local/bin/try-window"

cat > "$root/usr/local/bin/missing-libraries" <<'END'
#!/bin/sh
cd "$1/_internal"
export LD_LIBRARY_PATH="$PWD:$PWD/PySide6:$PWD/PySide6/Qt/lib:$PWD/torch/lib"
find . -name '*.so*' -type f | while read -r file; do
  ldd "$file" 2> /dev/null | sed -n "s|\(.*\) => not found|$file lacks\1|p"
done
END
chmod 755 "$root/usr/local/bin/missing-libraries"

try() { # the program, and what it is called here
  person "$1 --version"
  person "$1 selftest > ~/selftest.log" || { grep FAILED "$root/home/person/selftest.log"; exit 1; }
  person "tail -n 1 ~/selftest.log; rm ~/selftest.log"
  person "$1 run --prompt 'One two three, one two three' --max-new-tokens 16 --report ~/run.json" \
    > /dev/null
  person "xvfb-run -a -s '-screen 0 1600x1000x24' /usr/local/bin/try-window ~/window.json $1"
  person "grep -q '\"outcome\": *\"finished\"' ~/run.json && rm ~/run.json ~/window.json"
  echo "$2: a run in the terminal, one in the window, a report of each."
}

echo "== the Debian package =="
cp "$deb" "$root/tmp/package.deb"
inside apt-get install -qq --no-install-recommends \
  /tmp/package.deb > /dev/null 2>&1
rm "$root/tmp/package.deb"
if inside sh -c 'command -v python3'; then echo "It has brought a Python."; exit 1; fi
missing=$(inside /usr/local/bin/missing-libraries /usr/lib/foretoken)
[ -z "$missing" ] || { echo "$missing"; exit 1; }
try foretoken "The Debian package"
inside apt-get remove --purge -qq foretoken > /dev/null 2>&1
left=$(files | grep -i foretoken | grep -v "^home/person/\.\(local/share\|local/state\|cache\|config\)/foretoken" || true)
[ -z "$left" ] || { echo "Left behind: $left"; exit 1; }
echo "Removed; nothing is left outside the person's own folders."
rm -rf "$root/home/person/.local" "$root/home/person/.cache" "$root/home/person/.config"

echo "== the installer for one person =="
files > "$root.before"
cp "$run" "$root/tmp/installer.run"
person "sh /tmp/installer.run --nochown > /dev/null 2>&1"
rm "$root/tmp/installer.run"
person "test -f ~/.local/share/applications/foretoken.desktop"
try '~/.local/bin/foretoken' "The installer"
person "~/.local/lib/foretoken/uninstall.sh"
files > "$root.after"
# The fonts' cache and Qt's own file of settings belong to libraries that other programs share.
left=$(diff "$root.before" "$root.after" | sed -n 's/^> //p' |
  grep -v "^home/person/\.\(local/share\|local/state\|cache\|config\)/foretoken" |
  grep -v "^home/person/\.\(cache/fontconfig/\|config/QtProject.conf\)" |
  while read -r place; do [ -d "$root/$place" ] || echo "$place"; done || true)
rm -f "$root.before" "$root.after"
[ -z "$left" ] || { echo "Left behind: $left"; exit 1; }
echo "Removed; nothing is left outside the person's own folders."
echo "All is well."
