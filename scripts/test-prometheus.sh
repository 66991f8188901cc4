#!/usr/bin/env bash
# A real Prometheus (Debian's package `prometheus`) scrapes `shortlane metrics` in private namespaces
# and answers every query of the Grafana dashboard and of the alerts: test-prometheus.sh PROGRAM
set -euo pipefail

program=$(realpath "$1")
packaging=$(realpath "$(dirname "$0")/../packaging")
if [ "${2:-}" != inside ]; then
	if ! command -v prometheus > /dev/null && ! apt-get install -y -qq prometheus > /dev/null 2>&1; then
		echo "SKIPPED: no prometheus here, and none can be installed" >&2
		exit 0
	fi
	if ! unshare --map-root-user --net --mount true 2> /dev/null; then
		echo "SKIPPED: no namespaces here" >&2
		exit 0
	fi
	# As root of the machine, if so: the engines take more than a namespace's root may do.
	map=(); [ "$(id -u)" = 0 ] || map=(--map-root-user)
	exec unshare "${map[@]}" --net --mount "$0" "$program" inside "$(id -u)"
fi

promtool check rules "$packaging/prometheus/shortlane.rules.yml"
promtool test rules "$packaging/prometheus/shortlane.test.yml"

work=$(mktemp -d)
# All that is started here ends with this, and by its number.
pids=()
trap 'kill "${pids[@]}" 2> /dev/null || true; wait; rm -rf "$work"' EXIT
mount -t tmpfs none /run
ip link set lo up
for device in v w; do
	ip link add "${device}0" type veth peer name "${device}1"
	ip link set "${device}0" up
	ip link set "${device}1" up
done

# With a long lane, so that all queries have something to tell.
"$program" bridge v0 w0 --rate 20mbit --io packet --scheduler efd 2> "$work/bridge" &
pids+=($!)
# A rate that follows the link, and a host beyond that answers. `attach` takes root of the machine.
follows=0
if [ "$3" = 0 ]; then
	follows=1
	ip netns add beyond
	ip link add x0 type veth peer name x1 netns beyond
	ip link set x0 up
	ip address add 10.9.1.1/24 dev x0
	ip -n beyond link set x1 up
	ip -n beyond address add 10.9.1.2/24 dev x1
	"$program" attach x0 --engine userspace --rate auto:1mbit..2mbit..40mbit --probe 10.9.1.2 --foreground \
		2> "$work/follow" &
	pids+=($!)
else
	echo "SKIPPED: rates that follow the link, as this is not root of the machine" | tee "$work/follow" >&2
fi
"$program" metrics --listen 127.0.0.1:9750 2> "$work/metrics" &
pids+=($!)
cat > "$work/prometheus.yml" <<YML
global: { evaluation_interval: 5s }
rule_files: ["$packaging/prometheus/shortlane.rules.yml"]
scrape_configs:
  - job_name: shortlane
    scrape_interval: 1s
    static_configs: [{ targets: ["127.0.0.1:9750"] }]
YML
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" \
	--web.listen-address=127.0.0.1:9090 > "$work/prometheus" 2>&1 &
pids+=($!)

# The value of a query, or nothing.
query() {
	python3 - "$1" <<'PY'
import json, sys, urllib.parse, urllib.request
url = "http://127.0.0.1:9090/api/v1/query?" + urllib.parse.urlencode({"query": sys.argv[1]})
try:
    found = json.load(urllib.request.urlopen(url, timeout=5))["data"]["result"]
except OSError:
    found = []
print(*(series["value"][1] for series in found))
PY
}

# Waits until a query has this answer.
expect() {
	for _ in $(seq 120); do
		found=$(query "$1")
		if [ "$found" = "$2" ]; then
			echo "$1 = $found"
			return
		fi
		sleep 0.5
	done
	echo "FAILED: $1 is '$found', not '$2'" >&2
	tail -n 5 "$work"/{bridge,follow,metrics,prometheus} >&2
	exit 1
}

expect 'up{job="shortlane"}' 1
expect 'shortlane_rate_limit_bits_per_second{device="v0",direction="egress"}' 20000000
# Something to count: to the far end of v0 and so, by the bridge, out of w0.
ip address add 10.9.0.1/24 dev v1
ping -q -b -c 20 -i 0.05 -W 1 10.9.0.255 > /dev/null 2>&1 || true
expect 'shortlane_sent_packets_total{device="w0",direction="egress",lane="0"} >= bool 1' 1
expect 'count(shortlane_attachment_info{engine="userspace"})' $((follows ? 3 : 2))
expect 'count(shortlane_sojourn_seconds_bucket{device="v0",lane="0",le="+Inf"})' 1
expect 'scrape_samples_scraped > bool 50' 1
# More than the rate carries, until the queue has to drop.
python3 - <<'PY'
import socket, time

flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flood.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for _ in range(200):
    for _ in range(100):
        flood.sendto(bytes(1400), ("10.9.0.255", 9))
    time.sleep(0.01)
PY
expect 'sum(shortlane_dropped_packets_total{device="w0"}) >= bool 1' 1
if [ "$follows" = 1 ]; then
	expect 'shortlane_auto_blind{device="x0",direction="egress"}' 0
	expect 'shortlane_auto_base_bits_per_second{device="x0",direction="egress"}' 2000000
	# More than the base, for which there is room.
	python3 - <<'PY'
import socket, time

flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(1000):
    flood.sendto(bytes(1400), ("10.9.1.2", 9))
    time.sleep(0.002)
PY
	expect 'shortlane_auto_decisions_total{device="x0",direction="egress",reason="room"} >= bool 1' 1
fi

# Every query of the dashboard, and every metric that an alert names, gives a series; and Prometheus
# evaluates every alert.
python3 - "$packaging" "$follows" <<'PY'
import json, re, sys, time, urllib.parse, urllib.request

packaging, follows = sys.argv[1], sys.argv[2] == "1"


def get(path, **parameters):
    url = f"http://127.0.0.1:9090/api/v1/{path}?" + urllib.parse.urlencode(parameters)
    return json.load(urllib.request.urlopen(url, timeout=5))["data"]


board = json.load(open(f"{packaging}/grafana/shortlane.json"))
queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
names = [each["query"] for each in board["templating"]["list"] if each["type"] == "query"]
alerts = open(f"{packaging}/prometheus/shortlane.rules.yml").read()
named = re.findall(r"shortlane_\w+", " ".join(names) + alerts)
asked = [query.replace("$device", ".*").replace("$__rate_interval", "30s") for query in queries]
assert asked and named
asked += sorted(set(named))
if not follows:
    asked = [query for query in asked if "shortlane_auto_" not in query]
for query in asked:
    assert "$" not in query, f"{query} has a variable that this does not know"
    for _ in range(60):
        if get("query", query=query)["result"]:
            break
        time.sleep(0.5)
    else:
        sys.exit(f"FAILED: no series: {query}")
for _ in range(180):
    rules = [rule for group in get("rules")["groups"] for rule in group["rules"]]
    health = {rule["name"]: rule["health"] for rule in rules}
    if health and "unknown" not in health.values():
        break
    time.sleep(0.5)
if set(health.values()) != {"ok"}:
    sys.exit(f"FAILED: alerts are not evaluated: {health}")
print(f"{len(asked)} queries of dashboard and alerts give series, {len(health)} alerts are evaluated")
PY
echo "a real Prometheus has scraped it: $(prometheus --version 2>&1 | head -n 1)"
