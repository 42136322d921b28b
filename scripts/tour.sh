#!/usr/bin/env bash
# A short tour of `sandbox` in a throwaway directory: a sample project, a risky command, what it
# changed, a promote, an undo. Asks nothing, needs no terminal, leaves nothing behind.
#
# usage: scripts/tour.sh PATH-TO-SANDBOX
set -euo pipefail

sandbox=$(realpath "${1:?usage: scripts/tour.sh PATH-TO-SANDBOX}")
place=$(mktemp -d "${TMPDIR:-/tmp}/sandbox-tour.XXXXXX")
trap 'cd /; chmod -R u+rwX "$place"; rm -rf "$place"' EXIT

# The tour has sandboxes of its own, apart from yours.
export SANDBOX_ROOT=$place/sandboxes
export PATH=$(dirname "$sandbox"):$PATH

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n# %s\n' "$*"; }
show() {
    printf '$ %s\n' "$*"
    bash -c "$*"
}

mkdir "$place/shop" && cd "$place/shop"
git init --quiet --initial-branch=main
git config user.name Ada && git config user.email ada@example.org
printf 'def price(item):\n    return item["price"]\n\n\ndef total(cart):\n    return sum(price(item) for item in cart)\n' >shop.py
printf 'colour = "plain"\n' >settings.toml
mkdir -p data && printf 'apples 3\npears 5\n' >data/stock.txt
git add . && git commit --quiet --message 'A small shop'

say "A project, with nothing of it backed up."
show ls -R

say "An agent's worst day, on a copy: try runs it isolated, shows what changed, throws it away."
show "sandbox try --discard -- sh -c 'rm -rf data .git; echo hello >shop.py'"
say "The project never noticed."
show "ls -A && git status --short"

say "Something we may want to keep: a sandbox with a name."
show "sandbox create tidy"
show "sandbox run tidy \"sed -i s/price/cost/g shop.py; echo 'plums 7' >>data/stock.txt; rm settings.toml\""

say "What would change, as a diff that git apply and patch accept."
show "sandbox diff tidy --stat"
show "sandbox diff tidy shop.py"

say "Take a part of it: the plan first, then the change."
show "sandbox promote tidy shop.py data --dry-run"
show "sandbox promote tidy shop.py data --yes"
show "git status --short"
say "The rest is still waiting in the sandbox."
show "sandbox diff tidy --files"

say "Changed our mind: the source gets back exactly what stood there."
show "sandbox promote tidy --undo --yes"
show "git status --short"

say "And away with it."
show "sandbox discard tidy --force"
say "That was the tour. The binary is $sandbox"
