package host

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Network is the machine's side of the pod network.
type Network struct {
	// Bridge joins the pods; it carries the node's address.
	Bridge string
	// Gateway is that address with its prefix, such as 10.244.0.1/24.
	Gateway string
	// Rules is a file for nft that lets pods reach the world.
	Rules string
}

// sysctls are what forwarding between pods, services and the world needs.
var sysctls = map[string]string{
	"net/ipv4/ip_forward": "1",
	// Traffic between two pods of one bridge must pass the rules of services.
	"net/bridge/bridge-nf-call-iptables": "1",
}

// Ensure makes the bridge, forwarding and address translation. The node's
// address is on the bridge, so that it stays when the machine's own changes.
func (n Network) Ensure(ctx context.Context) error {
	for _, module := range []string{"overlay", "br_netfilter", "nf_tables"} {
		// It may be built in, or loaded, or there may be no modprobe: whether
		// the function is there is seen below.
		_, _ = run(ctx, nil, "modprobe", module)
	}
	if _, err := net.InterfaceByName(n.Bridge); err != nil {
		if _, err := run(ctx, nil, "ip", "link", "add", n.Bridge, "type", "bridge"); err != nil {
			return fmt.Errorf("create bridge: %w", err)
		}
	}
	if _, err := run(ctx, nil, "ip", "addr", "replace", n.Gateway, "dev", n.Bridge); err != nil {
		return fmt.Errorf("set address of bridge: %w", err)
	}
	if _, err := run(ctx, nil, "ip", "link", "set", n.Bridge, "up"); err != nil {
		return fmt.Errorf("start bridge: %w", err)
	}
	for name, value := range sysctls {
		if err := setSysctl(name, value); err != nil {
			return fmt.Errorf("set %s (the kernel must have bridge netfilter, module br_netfilter): %w", name, err)
		}
	}
	if _, err := run(ctx, nil, "nft", "-f", n.Rules); err != nil {
		return fmt.Errorf("load rules for pods' way out: %w", err)
	}
	return nil
}

// Remove deletes what Ensure and the cluster's daemons left in the kernel.
func (n Network) Remove(ctx context.Context) error {
	for _, table := range []string{"ip sharedos-localcluster", "ip kube-proxy", "ip6 kube-proxy"} {
		words := append([]string{"delete", "table"}, strings.Fields(table)...)
		if out, err := run(ctx, nil, "nft", words...); err != nil && !strings.Contains(out, "No such file") {
			return fmt.Errorf("remove rules: %w", err)
		}
	}
	if _, err := net.InterfaceByName(n.Bridge); err == nil {
		if _, err := run(ctx, nil, "ip", "link", "delete", n.Bridge); err != nil {
			return fmt.Errorf("remove bridge: %w", err)
		}
	}
	// The plugins' library remembers results in a folder of all clusters.
	results, err := filepath.Glob("/var/lib/cni/results/sharedos-localcluster-*")
	if err != nil {
		return fmt.Errorf("list remembered network results: %w", err)
	}
	for _, file := range results {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("remove remembered network result: %w", err)
		}
	}
	return nil
}

func setSysctl(name, value string) error {
	file := filepath.Join("/proc/sys", name)
	if now, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(now)) == value {
		return nil // it may be right and read-only
	}
	return os.WriteFile(file, []byte(value), 0o644)
}

// PortFree says whether nobody listens on an address.
func PortFree(address string) error {
	l, err := net.Listen("tcp", address) //nolint:noctx // it does not wait
	if err != nil {
		return fmt.Errorf("address %s is taken by another program: %w", address, err)
	}
	return l.Close()
}
