#!/usr/bin/env sh
# Prints the Secret of the manifests: ./secret.sh | kubectl apply -f -
set -eu

for name in EXOSCALE_API_KEY EXOSCALE_API_SECRET EXOSCALE_ZONE; do
  if ! printenv "$name" > /dev/null; then
    echo "set $name" >&2
    exit 1
  fi
done

encoded() { printf '%s' "$1" | base64 | tr -d '\n'; }

cat << SECRET
apiVersion: v1
kind: Secret
metadata:
  name: exoscale-api-credentials
  namespace: kube-system
type: Opaque
data:
  api-key: $(encoded "$EXOSCALE_API_KEY")
  api-secret: $(encoded "$EXOSCALE_API_SECRET")
  api-zone: $(encoded "$EXOSCALE_ZONE")
SECRET
