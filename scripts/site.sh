#!/usr/bin/env bash
# Makes the documents' site, to be read without a network: pages of the documents as docs/README.md lists them, a search
# over all, and reports of runs as they come out of the program. Each link to another of its files is checked.
#
#     scripts/site.sh PROGRAM OUT        needs mdbook: `make site` brings it
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
src=$work/src

# The same folders as in the project, so that links between documents stay as they are. What documents link to goes along.
mkdir "$src"
git ls-files '*.md' contrib docs | grep -v '^\.github/\|^tests/' | xargs cp --parents -t "$src"
# Links of a document, without anchors, as paths of the project.
links() {
	local folder
	folder=$(dirname "$1")
	grep -o '](\([^)# ]*\)' "$1" | cut -c3- | grep -v '^https\?:\|^$' | while read -r link; do
		realpath -m --relative-to=. "$folder/$link"
	done || true
}
git ls-files '*.md' | grep -v '^tests/' | while read -r document; do links "$document"; done | sort -u |
	while read -r file; do [ ! -f "$file" ] || echo "$file"; done | xargs -r cp --parents -t "$src"

# Reports of runs on models of devices, as the program makes them.
examples=$src/examples
mkdir "$examples"
{
	echo '# Reports of runs'
	echo
	echo 'As they come out of the program: click, point, print. The devices are models, so they come out the same each time.'
	echo
} >"$examples/README.md"
# The name, what it shows, and the command.
example() {
	local name=$1 about=$2
	shift 2
	(cd "$work" && "$program" "$@" --out "$name" >/dev/null 2>&1) || [ $? = 3 ] || [ $? = 4 ] || {
		echo "site: rigel $* failed" >&2
		exit 1
	}
	[ -e "$work/$name/report.html" ] || (cd "$work" && "$program" report "$name" --html >/dev/null 2>&1)
	cp "$work/$name/report.html" "$examples/$name.html"
	printf '* [%s](%s.html): %s `rigel %s`\n' "$name" "$name" "$about" "$*" >>"$examples/README.md"
}
cp docs/examples/* "$work"
example calibrate 'what a device can do.' calibrate sim:8,500us,exponential --seed 1
example capped 'a volume with a limit and burst credit.' calibrate sim:8,500us,limit=2000/s+10000 --seed 1
example curve 'latency at each load that is offered.' curve sim:8,100us --rate 10%..120% --max-latency 1ms --seed 1
example soak 'a week, round by round.' soak sim:8,100us,slow=5ms@0.5% --work 100kops --every 15m --for 7d --slo 'p99<1ms' --seed 1
example fit 'how many times a demand it carries.' fit watch-postgres.jsonl sim:8,100us --seed 1
example expect 'yes, no or undecided.' expect 'iops>=900' 'p99<25ms@500/s' sim:4,4ms --seed 1
example duet 'which of two is faster.' duet sim:8,1ms sim:8,1.1ms --seed 1
example cloud-day 'a day of a cloud volume, measured by others.' import cloud-day.csv

# The order of docs/README.md: its sections are the parts, each document once.
{
	printf '# Summary\n\n[Rigel](README.md)\n[All documents](docs/README.md)\n'
	declare -A seen=([README.md]=1 [docs/README.md]=1)
	while IFS= read -r line; do
		case $line in
		'## '*) printf '\n# %s\n\n' "${line#\#\# }" ;;
		esac
		while IFS=$'\t' read -r title link; do
			file=$(realpath -m --relative-to=. "docs/${link%%#*}")
			[[ $file == *.md && -z ${seen[$file]:-} ]] || continue
			seen[$file]=1
			printf -- '- [%s](%s)\n' "$title" "$file"
			[ "$file" = docs/decisions/README.md ] || continue
			sed -n 's|^\* \[\([0-9]*\)\](\([^)]*\)) \(.*\)|  - [\1 \3](docs/decisions/\2)|p' "$file"
		done < <(grep -o '\[[^]]*\]([^)]*)' <<<"$line" | sed 's/^\[\(.*\)\](\(.*\))$/\1\t\2/')
	done < <(sed ':again; /^\*.*[^.]$/ { N; s/\n  */ /; t again }' docs/README.md)
	printf '\n# Reports\n\n- [Reports of runs](examples/README.md)\n\n# The project\n\n'
	for file in CHANGELOG.md tests/golden/unsafe.md contrib/README.md contrib/ranks/README.md crates/*/README.md; do
		[ -n "${seen[$file]:-}" ] || printf -- '- [%s](%s)\n' "$(sed -n 's/^# //p;T;q' "$file")" "$file"
	done
} >"$src/SUMMARY.md"
cat >"$work/book.toml" <<-TOML
	[book]
	title = "Rigel"
	description = "Tells what a storage platform will do for a database, and proves it"
	language = "en"
	[output.html]
	default-theme = "light"
	preferred-dark-theme = "navy"
	no-section-label = true
	smart-punctuation = false
	[output.html.print]
	enable = false
TOML
# A folder's README is its index.html, also where it is linked to.
find "$src" -name README.md -execdir mv {} index.md \;
find "$src" -name '*.md' -exec sed -i 's/README\.md\([)#]\)/index.md\1/g' {} +
rm -rf "${out:?}"/*
(cd "$work" && mdbook build --dest-dir "$out" 2>&1 | grep -i 'warn\|error' || true)

# Nothing comes from elsewhere, and every link leads to a file that is there.
wrong=0
while IFS=$'\t' read -r page link; do
	link=${link%%[#?]*}
	[ -n "$link" ] || continue
	[ -e "$(dirname "$page")/$link" ] || {
		echo "site: ${page#"$out"/} links to $link, which is not there" >&2
		wrong=$((wrong + 1))
	}
done < <(find "$out" -name '*.html' ! -path '*/examples/*' ! -name 404.html -print0 | xargs -0 grep -oHE '(href|src)="[^"]*"' |
	sed -E 's/:(href|src)="([^"]*)"$/\t\2/' | grep -vP '\t(https?:|mailto:|data:|javascript:)' | sort -u)
[ "$wrong" = 0 ] || exit 1
echo "site: $(find "$out" -name '*.html' | wc -l) pages, $(du -sh --apparent-size "$out" | cut -f1): $2/index.html"
