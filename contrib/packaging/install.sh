#!/bin/sh
# Installs fullpipe from a folder or an address that has the files of a release.
#
#   sh install.sh                      from the folder that this script is in
#   sh install.sh --from https://..    from an address, by curl or wget
#   sh install.sh --prefix ~/.local    elsewhere than /usr/local
#   sh install.sh --remove             removes it; with --prefix, from there
#
# It checks SHA256SUMS before it writes anything, and writes below the prefix only.
set -eu

version=@VERSION@
from=$(dirname "$0")
prefix=/usr/local
remove=

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
    --from | --prefix)
      [ $# -ge 2 ] || fail "$1 needs a value"
      if [ "$1" = --from ]; then from=$2; else prefix=$2; fi
      shift 2
      ;;
    --remove)
      remove=yes
      shift
      ;;
    -h | --help)
      sed -n '2,9s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *) fail "no option '$1': there are --from, --prefix and --remove" ;;
  esac
done

if [ -n "$remove" ]; then
  [ -e "$prefix/bin/fullpipe" ] || fail "$prefix/bin/fullpipe is not there: give the --prefix that it was installed with"
  rm -f "$prefix/bin/fullpipe" "$prefix/share/man/man1"/fullpipe.1 "$prefix/share/man/man1"/fullpipe-*.1 \
    "$prefix/share/man/zh_CN/man1"/fullpipe.1 "$prefix/share/man/zh_CN/man1"/fullpipe-*.1 ||
    fail "cannot remove from $prefix: run it as root"
  rmdir "$prefix/share/man/zh_CN/man1" "$prefix/share/man/zh_CN" 2>/dev/null || :
  echo "removed fullpipe from $prefix"
  exit 0
fi

[ "$(uname -s)" = Linux ] || fail "fullpipe runs on Linux; this is $(uname -s)"
case $(uname -m) in
  x86_64 | amd64) machine=x86_64 ;;
  aarch64 | arm64) machine=aarch64 ;;
  *) fail "no release for $(uname -m): build it with cargo build --release" ;;
esac

name=fullpipe-$version-$machine-linux
work=$(mktemp -d)
trap 'rm -rf "$work" "$prefix/bin/.fullpipe.$$"' EXIT
trap 'exit 130' HUP INT TERM

# fetch FILE: from the folder or the address into $work.
fetch() {
  case $from in
    http://* | https://*)
      if command -v curl >/dev/null; then
        curl -fsSL -o "$work/$1" "$from/$1" || fail "cannot fetch $from/$1"
      elif command -v wget >/dev/null; then
        wget -q -O "$work/$1" "$from/$1" || fail "cannot fetch $from/$1"
      else
        fail "neither curl nor wget is there: fetch the release's files by hand, and run this beside them"
      fi
      ;;
    *) cp "$from/$1" "$work/$1" || fail "$from has no $1: give --from the folder of the release" ;;
  esac
}

fetch SHA256SUMS
fetch "$name.tar.gz"
grep "  $name.tar.gz\$" "$work/SHA256SUMS" >"$work/sum" || fail "SHA256SUMS does not list $name.tar.gz"
(cd "$work" && sha256sum -c sum >/dev/null 2>&1) || fail "$name.tar.gz is not the file that SHA256SUMS describes: fetch it again"

tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/man/zh_CN/man1" || fail "cannot write to $prefix: run it as root, or with --prefix ~/.local"
# Beside its place and then renamed: a running fullpipe keeps its own file.
cp "$work/$name/fullpipe" "$prefix/bin/.fullpipe.$$" || fail "cannot write to $prefix/bin: run it as root, or with --prefix ~/.local"
chmod 755 "$prefix/bin/.fullpipe.$$"
mv -f "$prefix/bin/.fullpipe.$$" "$prefix/bin/fullpipe"
cp "$work/$name"/man/*.1 "$prefix/share/man/man1/"
cp "$work/$name"/man/zh_CN/*.1 "$prefix/share/man/zh_CN/man1/"
echo "installed $prefix/bin/fullpipe ($("$prefix/bin/fullpipe" -V))"
case :$PATH: in
  *:"$prefix/bin":*) ;;
  *) echo "$prefix/bin is not in PATH: add it, or call $prefix/bin/fullpipe" ;;
esac
