#!/usr/bin/env bash
# A short tour of `sandbox` in a throwaway directory: a sample project, a risky command, what it
# changed, a promote, an undo. Asks nothing, needs no terminal, leaves nothing behind.
#
# usage: scripts/tour.sh PATH-TO-SANDBOX
set -euo pipefail

sandbox=$(realpath "${1:?usage: scripts/tour.sh PATH-TO-SANDBOX}")
place=$(mktemp -d "${TMPDIR:-/tmp}/sandbox-tour.XXXXXX")
trap 'cd /; chmod -R u+rwX "$place"; rm -rf "$place"' EXIT

# The tour has sandboxes of its own, apart from yours, and calls the binary by its name.
export SANDBOX_ROOT=$place/sandboxes
mkdir "$place/bin"
ln -s "$sandbox" "$place/bin/sandbox"
export PATH=$place/bin:$PATH

bold='' plain=''
[ -t 1 ] && bold=$'\033[1m' plain=$'\033[0m'

# What is told and what is printed keep their order only on one stream.
exec 2>&1

say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }

show() {
    printf '%s$ %s%s\n' "$bold" "$1" "$plain"
    bash -c "$1"
}

mkdir -p "$place/shop/data"
cd "$place/shop"
cat >shop.py <<'PYTHON'
def price(item):
    return item["price"]


def total(cart):
    return sum(price(item) for item in cart)
PYTHON
printf 'colour = "plain"\n' >settings.toml
printf 'apples 3\npears 5\n' >data/stock.txt

say "A small project, nowhere backed up."
show "ls . data"

say "Somebody's worst day, on a copy: it runs isolated, shows what changed, and is thrown away."
show "sandbox try --discard -- sh -c 'rm -rf data; echo oops > shop.py'"

say "The project never noticed."
show "ls . data"

say "Now something we may want to keep: a sandbox with a name."
show "sandbox create tidy"
show "sandbox run tidy 'sed -i s/price/cost/g shop.py; echo plums 7 >> data/stock.txt; rm settings.toml'"

say "What changed, as a patch that git apply and patch accept."
show "sandbox diff tidy --stat"
show "sandbox diff tidy shop.py"

say "Take a part of it: first the plan, then the change."
show "sandbox promote tidy shop.py data --dry-run"
show "sandbox promote tidy shop.py data --yes"
show "head -2 shop.py"

say "The rest is still waiting in the sandbox."
show "sandbox diff tidy --files"

say "We changed our mind: the source gets back exactly what stood there."
show "sandbox promote tidy --undo --yes"
show "head -2 shop.py"

say "And away with it."
show "sandbox discard tidy --force"

say "That was the tour. The binary is $sandbox"
