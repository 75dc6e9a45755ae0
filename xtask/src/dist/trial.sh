# Installs each package of /tmp in a fresh Debian system, and runs its programs.
set -eu
# Maximum time for installing a package and the first run, on this machine's storage and mirror.
max_seconds=120

if command -v cc gcc clang cargo; then
    echo "error: this Debian system has a compiler, so the test would not show that none is needed" >&2
    exit 1
fi

# try_package NAME COMMAND...: runs the command, which installs the package and runs its programs, and checks its duration.
try_package() {
    name=$1
    shift
    start=$(date +%s)
    mkdir "/tmp/try-$name"
    (cd "/tmp/try-$name" && "$@")
    seconds=$(($(date +%s) - start))
    rm -r "/tmp/try-$name"
    echo "$name: installed and run in $seconds s"
    if [ "$seconds" -gt "$max_seconds" ]; then
        echo "error: the limit is $max_seconds s" >&2
        exit 1
    fi
}

try_archive() {
    mkdir local
    tar -xzf /tmp/feedrate-*-linux.tar.gz --strip-components=1 -C local
    PATH=$PWD/local/bin:$PATH
    feedrate run quickstart --scale 0.1
    dlio_benchmark --help >help.txt
}

try_wheel() {
    python3 -m venv env
    env/bin/pip install --quiet --no-index /tmp/feedrate-*.whl
    env/bin/dlio_benchmark --help >help.txt
    env/bin/python -c '
import feedrate
print(feedrate.run("quickstart", arguments=["--scale", "0.1"])["accelerators"], "accelerators")'
}

try_debian() {
    apt-get install --yes -qq /tmp/feedrate_*.deb
    feedrate run quickstart
    dlio_benchmark --help >help.txt
    gzip --test /usr/share/man/man1/feedrate-run.1.gz
    bash -c '. /usr/share/bash-completion/completions/feedrate && complete -p feedrate'
}

try_package archive try_archive
try_package wheel try_wheel
try_package debian try_debian
apt-get purge --yes -qq feedrate
if [ -e /usr/share/doc/feedrate ]; then
    echo "error: files of the Debian package remain after its removal" >&2
    exit 1
fi
