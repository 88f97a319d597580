#!/usr/bin/env bash
# Tries the dashboards of contrib/grafana on a real Prometheus: a soak and a watch of this directory's disk are scraped
# for half a minute, and each query of each panel is asked as Grafana would. Everything is removed again.
#
#     scripts/check-dashboards.sh PROGRAM
set -euo pipefail
program=$(realpath "$1")
dashboards=$(realpath "$(dirname "$0")/../contrib/grafana")
for tool in prometheus curl jq; do
	command -v "$tool" >/dev/null || {
		echo "check-dashboards: there is no $tool" >&2
		exit 1
	}
done
work=$(mktemp -d -p .)
work=$(realpath "$work")
cd "$work"
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$work"' EXIT

"$program" soak . --scratch-size 64MiB --every 5s --for 2min --work 200ops --slo 'p99<50ms' --rate 100 \
	--metrics 127.0.0.1:9464 --no-progress --out soak >soak.log 2>&1 &
"$program" watch . --every 2s --for 2min --metrics 127.0.0.1:9465 --no-progress --out watch >watch.log 2>&1 &
cat >prometheus.yml <<-YAML
	global: { scrape_interval: 1s }
	scrape_configs:
	  - job_name: rigel
	    static_configs: [ targets: ["127.0.0.1:9464", "127.0.0.1:9465"] ]
YAML
prometheus --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:9466 \
	>prometheus.log 2>&1 &
sleep 40
# All three still run.
[ "$(jobs -pr | wc -l)" = 3 ] || {
	tail -n 5 ./*.log >&2
	exit 1
}

ask() { curl -sS --data-urlencode "query=$1" http://127.0.0.1:9466/api/v1/query; }
wrong=0 empty=0 full=0
for dashboard in "$dashboards"/*.json; do
	while IFS=$'\t' read -r title query; do
		# What Grafana puts in for its variables.
		query=$(sed -E 's/\$window/30s/g; s/\$(job|instance|class|source|stream)/.*/g' <<<"$query")
		answer=$(ask "$query")
		if [ "$(jq -r .status <<<"$answer")" != success ]; then
			echo "check-dashboards: $(basename "$dashboard"), $title: $(jq -r .error <<<"$answer"): $query" >&2
			wrong=$((wrong + 1))
		elif [ "$(jq '.data.result | length' <<<"$answer")" = 0 ]; then
			echo "check-dashboards: $(basename "$dashboard"), $title: no data: $query"
			empty=$((empty + 1))
		else
			full=$((full + 1))
		fi
	done < <(jq -r '.panels[] | .title as $title | .targets[]? | [$title, .expr] | @tsv' "$dashboard")
done
echo "check-dashboards: $(prometheus --version 2>&1 | head -n 1 | cut -d' ' -f3): $full queries have data, $empty have none," \
	"$wrong are refused"
[ "$wrong" = 0 ] && [ "$full" -gt 0 ]
