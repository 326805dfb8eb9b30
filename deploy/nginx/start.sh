#!/bin/sh
# Starts nginx in a container: tells it the name server that the container was given (Docker's, podman's and Kubernetes'
# differ), then becomes it. Only the first one is asked, as programs do: a second one is the machine's own, which does not
# know the containers. usage: start.sh [resolv.conf [file to write]]
set -eu
server=$(awk '$1 == "nameserver" && $2 !~ /%/ { print ($2 ~ /:/) ? "[" $2 "]" : $2; exit }' "${1:-/etc/resolv.conf}")
if [ -z "$server" ]; then
  echo "start.sh: ${1:-/etc/resolv.conf} names no name server" >&2
  exit 1
fi
echo "resolver $server valid=2s ipv6=off;" > "${2:-/tmp/frontrow-nginx-resolver.conf}"
exec nginx -g "daemon off;"
