#!/bin/sh
# Two ranks that communicate only by TCP: each is in a separate network namespace, connected by a pair
# of virtual devices.  tests/mpi_namespaces.sh PROGRAM [ARGUMENT...] runs the program there; exits with
# 77 if namespaces cannot be made. Prints the number of bytes that were sent.
set -eu
work=$(mktemp -d)
name=softback$$
trap 'ip netns del ${name}a 2>/dev/null || :; ip netns del ${name}b 2>/dev/null || :; rm -rf "$work"' EXIT
{ ip netns add ${name}a && ip netns add ${name}b &&
    ip link add veth netns ${name}a type veth peer name veth netns ${name}b; } 2>/dev/null || exit 77
for side in a1 b2; do
    space=$name${side%?}
    ip -n "$space" link set lo up
    ip -n "$space" link set veth up
    ip -n "$space" addr add "198.18.77.${side#?}/24" dev veth
done

# In place of ssh: the daemon for an address is started in its namespace.
cat >"$work/agent" <<END
#!/bin/sh
case \$1 in *.1) space=${name}a ;; *) space=${name}b ;; esac
shift
exec ip netns exec \$space sh -c "\$*"
END
chmod +x "$work/agent"
timeout 60 ip netns exec ${name}a mpirun --mca plm_rsh_agent "$work/agent" --host 198.18.77.1,198.18.77.2 \
    --mca btl tcp,self --mca btl_tcp_if_include 198.18.77.0/24 \
    --mca oob_tcp_if_include 198.18.77.0/24 --bind-to none -n 2 "$@"
sent=$(ip netns exec ${name}a cat /sys/class/net/veth/statistics/tx_bytes)
echo "$sent bytes by TCP"
