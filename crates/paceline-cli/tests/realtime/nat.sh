# Run in a network and mount namespace of its own, which stands for this machine. Another one behind a pair of devices stands for
# the world outside: its servers at 192.0.2.1 and 2001:db8::1 tell from where a datagram came. A name server listens on loopback.
paceline=$1
folder=$(mktemp -d)
trap 'kill $outside $server $server6 $names 2> /dev/null; rm -rf "$folder"' EXIT
ip link set lo up
unshare -n sleep 60 &
outside=$!
sleep 0.5
ip link add out0 type veth peer name in0 netns $outside
ip addr add 192.0.2.2/24 dev out0
ip link set out0 up
nsenter -t $outside -n sh -c 'ip addr add 192.0.2.1/24 dev in0; ip addr add 2001:db8::1/64 dev in0 nodad; ip link set in0 up'
ip route add default via 192.0.2.1
ip addr add 2001:db8::2/64 dev out0 nodad
ip -6 route add default via 2001:db8::1

serve='import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], int(sys.argv[2])))
while True:
    data, peer = s.recvfrom(100)
    s.sendto(sys.argv[3].replace("PEER", peer[0]).encode(), peer)'
ask='import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(2)
s.sendto(b"x", (sys.argv[1], int(sys.argv[2])))
print(s.recv(100).decode())'
nsenter -t $outside -n python3 -c "$serve" 192.0.2.1 9000 'hi from PEER' &
server=$!
nsenter -t $outside -n python3 -c "$serve" 2001:db8::1 9000 'hi from PEER' &
server6=$!
python3 -c "$serve" 127.0.0.53 53 dns &
names=$!
printf 'nameserver 127.0.0.53\n' > "$folder/resolv.conf"
mount --bind "$folder/resolv.conf" "$(realpath /etc/resolv.conf)"
sleep 0.5

state() {
  echo "tables $(nft list tables | grep -c paceline_), forwarding $(cat /proc/sys/net/ipv4/conf/out0/forwarding)"
}
first() {
  "$@" 2> /dev/null | head -n 1
}

echo "masqueraded: $(first "$paceline" link --keep-root --nat --delay 5ms -- python3 -c "$ask" 192.0.2.1 9000)"
first "$paceline" link --keep-root --nat -- python3 -c "$ask" 2001:db8::1 9000 | grep -q from && echo "IPv6: an answer" || echo "IPv6: nothing"
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
echo "IPv6 masqueraded: $(first "$paceline" link --keep-root --nat --delay 5ms -- python3 -c "$ask" 2001:db8::1 9000)"
lookup='server=$(sed -n "s/^nameserver //p" /etc/resolv.conf); echo "$server answers $(python3 -c "$0" $server 53)"'
echo "name server: $(first "$paceline" link --keep-root --nat -- sh -c "$lookup" "$ask")"
echo "left: $(state), $(cat /etc/resolv.conf)"
first "$paceline" link --keep-root -- python3 -c "$ask" 192.0.2.1 9000 | grep -q from && echo "without: an answer" || echo "without: nothing"
"$paceline" link --keep-root --nat -- sleep 30 > /dev/null 2>&1 &
killed=$!
sleep 1
kill -9 $killed
wait $killed 2> /dev/null
echo "killed: $(state)"
"$paceline" link --keep-root --nat -- true > /dev/null 2>&1
echo "next: $(state)"
nested=$(first "$paceline" link --keep-root --nat --delay 5ms -- "$paceline" link --keep-root --nat --delay 5ms -- python3 -c "$ask" 192.0.2.1 9000)
echo "nested: $nested"

nested=$(first "$paceline" link --keep-root --nat --delay 5ms -- "$paceline" link --keep-root --nat --delay 5ms -- python3 -c "$ask" 2001:db8::1 9000)
echo "IPv6 nested: $nested"
