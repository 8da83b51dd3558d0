#!/bin/sh
# Installs Foretoken for the person who runs this, and for nobody else; no root, no Python needed.
# It lies in ~/.local/lib/foretoken afterwards; the uninstall.sh there takes all of it away again.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
program="$HOME/.local/lib/foretoken"
shared="${XDG_DATA_HOME:-$HOME/.local/share}"
command="$HOME/.local/bin/foretoken"

mkdir -p "$HOME/.local/lib" "$HOME/.local/bin" "$shared/applications" \
  "$shared/icons/hicolor/scalable/apps"

# Beside the old one first, so that a broken copy leaves that as it is.
rm -rf "$program.new"
cp -R "$here/foretoken" "$program.new"
cp "$here/uninstall.sh" "$program.new/uninstall.sh"
rm -rf "$program"
mv "$program.new" "$program"

ln -sfn "$program/foretoken" "$command"
cp "$here/foretoken.svg" "$shared/icons/hicolor/scalable/apps/foretoken.svg"
sed "s|^Exec=.*|Exec=\"$program/foretoken\"|" "$here/foretoken.desktop" \
  > "$shared/applications/foretoken.desktop"

echo "Foretoken is installed in $program and stands in the menu of applications."
case ":$PATH:" in
  *":$HOME/.local/bin:"*) echo "In a terminal: foretoken --help" ;;
  *) echo "In a terminal: $command --help (~/.local/bin is not in your PATH)" ;;
esac
echo "To remove it: $program/uninstall.sh"
