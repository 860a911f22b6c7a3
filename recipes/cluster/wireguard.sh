#!/bin/sh
# Join hosts by an encrypted network, over which Dragoman then trains: WireGuard, every host with every other.
#
#     sh recipes/cluster/wireguard.sh gpu1=10.0.0.11 gpu2=10.0.0.12 gpu3=10.0.0.13
#
# Each argument is what ssh connects to, and the address at which the other hosts reach it. The first
# host gets 10.99.0.1, the second 10.99.0.2, and so on: these are the addresses for the host list.
# Hosts need wireguard-tools and nftables, and a login as root or with sudo that asks nothing.
# Run it again with all hosts to add one, with the new one last; between runs of training, since the
# network is taken down for a moment. A private key is made on its host and never leaves it.
#
# SSH names another ssh command, as in SSH="ssh -F config"; NETWORK other addresses than 10.99.0.
set -eu

interface=wg-dragoman
folder=/etc/wireguard
port=51820
network=${NETWORK:-10.99.0}

as_root() { # HOST: runs the script on standard input there
  ${SSH:-ssh} -o BatchMode=yes "$1" 'if [ "$(id -u)" = 0 ]; then exec sh -s; else exec sudo -n sh -s; fi'
}

[ $# -ge 2 ] || { echo "usage: sh wireguard.sh HOST=ADDRESS HOST=ADDRESS ..." >&2; exit 2; }
for host in "$@"; do
  case $host in ?*=?*) ;; *) echo "$host: write it as HOST=ADDRESS" >&2; exit 2 ;; esac
done

# One line for each host: its name, the address at which it is reached, its address in the tunnel, its public key.
peers=$(
  number=0
  for host in "$@"; do
    number=$((number + 1))
    key=$(as_root "${host%%=*}" <<SCRIPT
set -eu
for tool in wg wg-quick nft; do
  command -v \$tool >/dev/null || { echo "${host%%=*} has no \$tool; install wireguard-tools and nftables" >&2; exit 1; }
done
umask 077
mkdir -p $folder
[ -s $folder/$interface.key ] || wg genkey > $folder/$interface.key
wg pubkey < $folder/$interface.key
SCRIPT
    )
    echo "${host%%=*} ${host#*=} $network.$number $key"
  done
)

config() { # ADDRESS in the tunnel: the configuration of the host that has it
  # Linux answers for an address on every interface, not only on the one that has it. Without the
  # rules, whoever shares a cable with a host could reach what listens on the tunnel's address.
  cat <<CONFIG
[Interface]
Address = $1/24
ListenPort = $port
PreUp = nft add table inet %i
PreUp = nft add chain inet %i input '{ type filter hook input priority -10; }'
PreUp = nft add rule inet %i input ip daddr $1 iifname != '{ "%i", "lo" }' drop
PostUp = wg set %i private-key $folder/%i.key
PostDown = nft delete table inet %i || true
CONFIG
  echo "$peers" | while read -r _ endpoint address key; do
    [ "$address" = "$1" ] || cat <<CONFIG

[Peer]
PublicKey = $key
Endpoint = $endpoint:$port
AllowedIPs = $address/32
CONFIG
  done
}

echo "$peers" | while read -r name _ address _; do
  as_root "$name" <<SCRIPT
set -eu
umask 077
if wg show $interface >/dev/null 2>&1; then wg-quick down $interface 2>/dev/null; fi
cat > $folder/$interface.conf <<'END'
$(config "$address")
END
said=\$(wg-quick up $interface 2>&1) || { echo "\$said" >&2; exit 1; }
SCRIPT
  echo "$name: $address"
done
