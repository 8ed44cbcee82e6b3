package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Times of a dial.
const (
	dialTimeout = 5 * time.Second
	keepAlive   = 15 * time.Second
)

// Guard is the rule. Its zero value refuses what is built in and allows the rest. It
// is safe for concurrent use once it is made.
type Guard struct {
	// Allow are exceptions to the built-in refusals.
	Allow []netip.Prefix
	// Only, when not empty, are the only addresses that may be dialled; what is in
	// Allow need not be repeated.
	Only []netip.Prefix
}

// RefusedError says which address was not dialled, and why.
type RefusedError struct {
	Address netip.Addr
	// Why is what the address is, such as "loopback".
	Why string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("address %s is refused: %s; the platform team can allow it (--egress-allow)", e.Address, e.Why)
}

// ParsePrefixes reads networks such as 10.0.0.0/8 and single addresses, separated by
// commas.
func ParsePrefixes(list string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for text := range strings.SplitSeq(list, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, failed := netip.ParseAddr(text)
			if failed != nil || address.Zone() != "" {
				return nil, fmt.Errorf("%q is neither a network such as 10.0.0.0/8 nor an address", text)
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		if prefix.Addr().Is4In6() {
			return nil, fmt.Errorf("%q: write IPv4 addresses as such", text)
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

// Check judges one address; its error is a [*RefusedError].
func (g *Guard) Check(address netip.Addr) error {
	for _, a := range meant(address) {
		if within(g.Allow, a) {
			continue
		}
		if why := special(a); why != "" {
			return &RefusedError{Address: address, Why: why}
		}
		if len(g.Only) > 0 && !within(g.Only, a) {
			return &RefusedError{Address: address, Why: "it is outside of the networks that may be reached"}
		}
	}
	return nil
}

func within(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// DialContext connects to a host and port, if every address it tries is allowed. A
// zone is never used: there is no reason to name an interface of this machine.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, ControlContext: g.control}
	return d.DialContext(ctx, network, address)
}

// control is called with the address of the socket that is about to be connected.
func (g *Guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	return g.Check(at.Addr())
}
