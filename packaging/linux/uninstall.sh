#!/bin/sh
# Takes away what install.sh brought. Models, history and settings are yours and stay where they are:
# `foretoken models path` names their folders.
set -eu

program="$HOME/.local/lib/foretoken"
shared="${XDG_DATA_HOME:-$HOME/.local/share}"
command="$HOME/.local/bin/foretoken"

if [ "$(readlink "$command" 2>/dev/null)" = "$program/foretoken" ]; then
  rm -f "$command"
fi
rm -f "$shared/applications/foretoken.desktop" \
  "$shared/icons/hicolor/scalable/apps/foretoken.svg"
rm -rf "$program"
echo "Foretoken is removed. Your models, runs and settings were left alone."
