#!/bin/sh
# Signs dist/Foretoken.app and puts it into a disk image. FORETOKEN_IDENTITY names the certificate;
# without one the signature is ad hoc, and macOS asks the person to allow the program once.
set -eu
cd "$(dirname "$0")/../.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
image="dist/foretoken-$version-macos-$(uname -m).dmg"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

codesign --force --deep --options runtime --entitlements packaging/macos/entitlements.plist \
  --sign "${FORETOKEN_IDENTITY:--}" dist/Foretoken.app
codesign --verify --deep --strict dist/Foretoken.app

cp -R dist/Foretoken.app "$folder"
ln -s /Applications "$folder/Applications"
rm -f "$image"
hdiutil create -volname Foretoken -srcfolder "$folder" -format ULFO "$image"
echo "$image"
