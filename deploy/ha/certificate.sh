#!/bin/sh
# A certificate for HAProxy and both gateways, signed by an authority of its own: agents trust certs/ca.crt.
# Further names as arguments: deploy/ha/certificate.sh gate.example
set -eu
umask 077
folder="${CERTS:-$(dirname "$0")/certs}"
mkdir -p "$folder"
cd "$folder"
names="DNS:localhost,DNS:gateway-1,DNS:gateway-2,IP:127.0.0.1"
for name in "$@"; do names="$names,DNS:$name"; done
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj "/CN=agent-gate authority" \
  -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign" -keyout ca.key -out ca.crt
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=agent-gate" -keyout gate.key -out gate.csr
printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\n' "$names" > names.cnf
openssl x509 -req -in gate.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 825 -extfile names.cnf -out gate.crt
cat gate.crt gate.key > gate.pem
rm gate.csr names.cnf
# The containers read them as user 10001, and nobody else does.
chown -R 10001 . 2>/dev/null || echo "Now run: sudo chown -R 10001 $folder"
