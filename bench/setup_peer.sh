#!/bin/sh
# Installs AccelForge into bench/.venv-peer, apart from einloom. It needs Python 3.12; say which with PYTHON=...
set -eu
cd "$(dirname "$0")"
VERSION=1.0.467
fits() { "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' >/dev/null 2>&1; }
PYTHON=${PYTHON:-}
if [ -z "$PYTHON" ]; then
    for candidate in python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python; do
        if fits "$candidate"; then PYTHON=$candidate; break; fi
    done
fi
if [ -z "$PYTHON" ] || ! fits "$PYTHON"; then
    echo "setup_peer: AccelForge $VERSION needs Python 3.12: PYTHON=/path/to/python3.12 bench/setup_peer.sh" >&2
    exit 1
fi
[ -x .venv-peer/bin/python ] || "$PYTHON" -m venv .venv-peer
.venv-peer/bin/python -m pip install --quiet "accelforge==$VERSION"
if ! command -v dot >/dev/null 2>&1; then
    echo "setup_peer: AccelForge also needs graphviz's program 'dot', or its finished search is lost." >&2
    echo "setup_peer: on Debian: apt-get install -y graphviz" >&2
    exit 1
fi
echo "setup_peer: AccelForge $(.venv-peer/bin/python -c 'from importlib.metadata import version; print(version("accelforge"))') is ready"
