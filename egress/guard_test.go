package egress_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/sharedos-dev/operator/egress"
)

func prefixes(tb testing.TB, list string) []netip.Prefix {
	tb.Helper()
	out, err := egress.ParsePrefixes(list)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// alone are addresses that lead back to the machine or its cloud, each in its plain form.
var alone = []string{
	"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1", "100.100.100.200", "192.0.0.192", "168.63.129.16",
	"224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1",
}

// dangerous are those that are refused wherever an address may stand for them.
var dangerous = []string{"169.254.169.254", "169.254.0.1", "100.100.100.200", "192.0.0.192", "168.63.129.16"}

func TestSpecialAddressesAreRefusedInEveryForm(t *testing.T) {
	t.Parallel()
	var guard egress.Guard
	forms := append([]string{
		"::", "::1", "fe80::1", "fe80::1%eth0", "febf::1", "ff02::1", "fec0::1", "fd00:ec2::254", "fd20:ce::254", "100::1",
		"fd00:c1::a9fe:a9fe", "fd00:42::42", "fd00:a9fe:a9fe::1", "fd00:100::100:200",
		"2001:db8:64::a9fe:a9fe", "2001:db8:64::6464:64c8", // by a translator of a network's own
	}, alone...)
	for _, text := range alone {
		four := netip.MustParseAddr(text).As4()
		for _, prefix := range []string{"::ffff:0.0.0.0", "::ffff:0:0.0.0.0", "64:ff9b::", "64:ff9b:1::", "::"} {
			raw := netip.MustParseAddr(prefix).As16()
			copy(raw[12:], four[:])
			forms = append(forms, netip.AddrFrom16(raw).String())
		}
		for _, at := range [][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}} {
			if !netip.MustParseAddr(text).IsLoopback() && !slices.Contains(dangerous, text) {
				continue
			}
			raw := netip.MustParseAddr("64:ff9b:1::").As16()
			for i, b := range four {
				raw[at[i]] = b
			}
			forms = append(forms, netip.AddrFrom16(raw).String())
		}
		for _, prefix := range []string{"2001:db8::5efe:0:0", "fd12::200:5efe:0:0"} {
			raw := netip.MustParseAddr(prefix).As16()
			copy(raw[12:], four[:])
			forms = append(forms, netip.AddrFrom16(raw).String())
		}
		raw := netip.MustParseAddr("2002::1").As16()
		copy(raw[2:], four[:])
		forms = append(forms, netip.AddrFrom16(raw).String())
		raw = netip.MustParseAddr("2001::1").As16()
		for i, b := range four {
			raw[12+i] = ^b
		}
		forms = append(forms, netip.AddrFrom16(raw).String())
	}
	for _, text := range forms {
		err := guard.Check(netip.MustParseAddr(text))
		if refused := (*egress.RefusedError)(nil); !errors.As(err, &refused) || refused.Why == "" {
			t.Errorf("%s: %v, want a refusal", text, err)
		}
	}
	if err := guard.Check(netip.Addr{}); err == nil {
		t.Error("no address at all was allowed")
	}
	for _, text := range []string{"10.96.0.1", "192.168.1.1", "172.16.0.1", "140.82.112.3", "2606:50c0:8000::153", "fd12:3456::1", "64:ff9b::8c52:7003", "2001:db8::5efe:8c52:7003", "64:ff9b:1::8c52:7003", "64:ff9b:1:fffe::8c52:7003", "fd00:42::43", "2001:db8::a9fe:1", "100.64.0.1", "::ffff:10.0.0.1"} {
		if err := guard.Check(netip.MustParseAddr(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAllowAndOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allow, only, address string
		ok                   bool
	}{
		{"127.0.0.0/8", "", "127.0.0.1", true},
		{"127.0.0.0/8", "", "::ffff:127.0.0.1", true},
		{"127.0.0.0/8", "", "64:ff9b::7f00:1", true},
		{"127.0.0.0/8", "", "169.254.169.254", false},
		{"::1", "", "::1", true},
		{"::1", "", "127.0.0.1", false},
		{"", "10.0.0.0/8,2001:db8::/32", "10.1.2.3", true},
		{"", "10.0.0.0/8,2001:db8::/32", "2001:db8::1", true},
		{"", "10.0.0.0/8", "11.0.0.1", false},
		{"", "0.0.0.0/0", "127.0.0.1", false},
		{"127.0.0.1", "10.0.0.0/8", "127.0.0.1", true},
	} {
		guard := egress.Guard{Allow: prefixes(t, c.allow), Only: prefixes(t, c.only)}
		if err := guard.Check(netip.MustParseAddr(c.address)); (err == nil) != c.ok {
			t.Errorf("allow %q only %q: %s: %v, want ok %v", c.allow, c.only, c.address, err, c.ok)
		}
	}
	for _, wrong := range []string{"10.0.0.0/33", "localhost", "::ffff:10.0.0.0/104", "fe80::1%eth0", "10.0.0.0/8;"} {
		if _, err := egress.ParsePrefixes(wrong); err == nil {
			t.Errorf("%q was read", wrong)
		}
	}
}

func TestDialChecksTheSocketsAddress(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var closed egress.Guard
	open := egress.Guard{Allow: prefixes(t, "127.0.0.0/8,::1")}
	// Names and odd spellings become an address before it is judged.
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1", "0.0.0.0"} {
		conn, err := closed.DialContext(context.Background(), "tcp", net.JoinHostPort(host, port))
		if refused := (*egress.RefusedError)(nil); !errors.As(err, &refused) {
			t.Errorf("%s: %v %v, want a refusal", host, conn, err)
		}
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		conn, err := open.DialContext(context.Background(), "tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		_ = conn.Close()
	}
}

// FuzzCheck: an address that is refused is refused in every form that carries it.
func FuzzCheck(f *testing.F) {
	for _, text := range alone {
		four := netip.MustParseAddr(text).As4()
		f.Add(four[:])
	}
	f.Add([]byte{10, 0, 0, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var guard egress.Guard
		switch len(raw) {
		case 4:
			plain := netip.AddrFrom4([4]byte(raw))
			refused := guard.Check(plain) != nil
			for _, prefix := range []string{"::ffff:0.0.0.0", "64:ff9b::"} {
				inside := netip.MustParseAddr(prefix).As16()
				copy(inside[12:], raw)
				if a := netip.AddrFrom16(inside); (guard.Check(a) != nil) != refused {
					t.Errorf("%s and %s are judged differently", plain, a)
				}
			}
		case 16:
			a := netip.AddrFrom16([16]byte(raw))
			if guard.Check(a) == nil && (a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified()) {
				t.Errorf("%s was allowed", a)
			}
		}
	})
}
