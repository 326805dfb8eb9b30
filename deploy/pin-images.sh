#!/bin/sh
# Fixes every image of compose.yaml and the Dockerfile by its digest: name:tag becomes name:tag@sha256:…, as the registry
# answers today. Run it again to renew them. Needs docker with buildx and the network; without an answer nothing changes.
set -eu
cd "$(dirname "$0")"
images=$(sed -n -e 's/^ *image: *\([^ #]*\).*/\1/p' -e 's/^ARG PYTHON_IMAGE=//p' compose.yaml Dockerfile | sed 's/@.*//' | sort -u)
cp compose.yaml compose.yaml.new
cp Dockerfile Dockerfile.new
trap 'rm -f compose.yaml.new Dockerfile.new' EXIT
for image in $images; do
  [ "$image" = frontrow:latest ] && continue # built here
  digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$image")
  case $digest in sha256:????????????????????????????????????????????????????????????????) ;; *)
    echo "pin-images: $image: no digest but '$digest'" >&2
    exit 1
    ;;
  esac
  sed -i -e "s|\(image: *\)$image\(@[^ ]*\)\{0,1\}|\1$image@$digest|" \
    -e "s|^\(ARG PYTHON_IMAGE=\)$image\(@.*\)\{0,1\}$|\1$image@$digest|" compose.yaml.new Dockerfile.new
  echo "$image@$digest"
done
mv compose.yaml.new compose.yaml
mv Dockerfile.new Dockerfile
