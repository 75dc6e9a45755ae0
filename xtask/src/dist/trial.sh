# Installs each package of /tmp in a fresh Debian and asks for a first answer.
set -eu
# The promise of the first minute, for the storage and mirror of this machine.
most_seconds=120

if command -v cc gcc clang cargo; then
    echo "error: this Debian has a compiler, and proves nothing" >&2
    exit 1
fi

# tried PACKAGE COMMAND...: the command installs the package and asks; both together are timed.
tried() {
    name=$1
    shift
    start=$(date +%s)
    mkdir "/tmp/try-$name"
    (cd "/tmp/try-$name" && "$@")
    seconds=$(($(date +%s) - start))
    rm -r "/tmp/try-$name"
    echo "$name: installed and answered in $seconds s"
    if [ "$seconds" -gt "$most_seconds" ]; then
        echo "error: that may take $most_seconds s" >&2
        exit 1
    fi
}

archive() {
    mkdir local
    tar -xzf /tmp/feedrate-*-linux.tar.gz --strip-components=1 -C local
    PATH=$PWD/local/bin:$PATH
    feedrate run quickstart --scale 0.1
    dlio_benchmark --help >help.txt
}

wheel() {
    python3 -m venv env
    env/bin/pip install --quiet --no-index /tmp/feedrate-*.whl
    env/bin/dlio_benchmark --help >help.txt
    env/bin/python -c '
import feedrate
print(feedrate.run("quickstart", arguments=["--scale", "0.1"])["accelerators"], "accelerators")'
}

debian() {
    apt-get install --yes -qq /tmp/feedrate_*.deb
    feedrate run quickstart
    dlio_benchmark --help >help.txt
    gzip --test /usr/share/man/man1/feedrate-run.1.gz
    bash -c '. /usr/share/bash-completion/completions/feedrate && complete -p feedrate'
}

tried archive archive
tried wheel wheel
tried debian debian
apt-get purge --yes -qq feedrate
if [ -e /usr/share/doc/feedrate ]; then
    echo "error: something is left of the Debian package" >&2
    exit 1
fi
