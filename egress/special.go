package egress

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// place is where the four bytes of an IPv4 address stand in an IPv6 address.
type place [4]int

// last is the usual one.
var last = place{12, 13, 14, 15}

// Networks by which an IPv6 address carries an IPv4 address that is reached in its stead.
var translated = [...]struct {
	prefix netip.Prefix
	at     []place
	// inverted is how Teredo writes its client.
	inverted bool
}{
	{netip.MustParsePrefix("::ffff:0:0/96"), []place{last}, false},   // IPv4-mapped, RFC 4291 2.5.5.2
	{netip.MustParsePrefix("::ffff:0:0:0/96"), []place{last}, false}, // IPv4-translated, RFC 2765
	{netip.MustParsePrefix("64:ff9b::/96"), []place{last}, false},    // NAT64, RFC 6052
	// NAT64 of a site, RFC 8215, whose prefix may be of any length in RFC 6052 2.2 from
	// here on; its byte 8 is zero.
	{netip.MustParsePrefix("64:ff9b:1::/48"), []place{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, last}, false},
	{netip.MustParsePrefix("2002::/16"), []place{{2, 3, 4, 5}}, false}, // 6to4, RFC 3056
	{netip.MustParsePrefix("2001::/32"), []place{last}, true},          // Teredo, RFC 4380
	{netip.MustParsePrefix("::/96"), []place{last}, false},             // IPv4-compatible, RFC 4291 2.5.5.1
}

// isatap are the interface identifiers, bytes 8 to 11, after which the IPv4 address of
// an ISATAP host stands in any network, RFC 5214 6.1.
var isatap = [...][4]byte{{0, 0, 0x5e, 0xfe}, {2, 0, 0x5e, 0xfe}}

// meant returns every address that a connection to this one may end at: itself, and
// an IPv4 address inside.
func meant(a netip.Addr) []netip.Addr {
	a = a.WithZone("")
	if a.Is4() {
		return []netip.Addr{a}
	}
	if a.Is4In6() {
		return []netip.Addr{a.Unmap()}
	}
	out := []netip.Addr{a}
	if a.IsLoopback() || a.IsUnspecified() {
		return out // these look like IPv4-compatible ones
	}
	raw := a.As16()
	for _, t := range translated {
		if !t.prefix.Contains(a) {
			continue
		}
		for _, at := range t.at {
			four := [4]byte{raw[at[0]], raw[at[1]], raw[at[2]], raw[at[3]]}
			if t.inverted {
				binary.BigEndian.PutUint32(four[:], ^binary.BigEndian.Uint32(four[:]))
			}
			// A reading at one of several places may be no address at all: of these only
			// the dangerous ones count.
			if v4 := netip.AddrFrom4(four); at == last || len(t.at) == 1 || dangerous(v4) {
				out = append(out, v4)
			}
		}
	}
	final := netip.AddrFrom4([4]byte(raw[12:]))
	if slices.Contains(isatap[:], [4]byte(raw[8:12])) || service(final) {
		out = append(out, final)
	}
	return out
}

// dangerous reports whether an IPv4 address leads to this machine or its cloud's services.
func dangerous(a netip.Addr) bool { return a.IsLoopback() || a.IsLinkLocalUnicast() || service(a) }

func service(a netip.Addr) bool { return services[a] != "" }

// services are the IPv4 addresses of the clouds' services for their machines, and what
// they are. Where one of them ends an IPv6 address, it is a cloud's address for the same
// service, or a translation by a network that only its owner knows.
var services = map[netip.Addr]string{
	netip.MustParseAddr("169.254.169.254"): "a cloud's metadata service",
	netip.MustParseAddr("100.100.100.200"): "a cloud's metadata service",
	netip.MustParseAddr("192.0.0.192"):     "a cloud's metadata service",
	netip.MustParseAddr("168.63.129.16"):   "a cloud's host service",
}

// Networks that lead back into the machine, to its cloud, or nowhere.
var refused = [...]struct {
	prefix netip.Prefix
	why    string
}{
	{netip.MustParsePrefix("fd00:ec2::/32"), "a cloud's metadata service"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "a cloud's metadata service"},
	{netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), "a cloud's metadata service"},
	{netip.MustParsePrefix("fd00:42::42/128"), "a cloud's metadata service"},
	{netip.MustParsePrefix("fd00:a9fe:a9fe::/48"), "a cloud's metadata service"},
	{netip.MustParsePrefix("fd00:100::100:200/128"), "a cloud's metadata service"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved or broadcast"},
	{netip.MustParsePrefix("100::/64"), "discarded"},
}

// special says what kind of address it is that nobody is reached at by accident, or
// nothing.
func special(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "no address"
	case a.IsUnspecified():
		return "unspecified"
	case a.IsLoopback():
		return "loopback"
	case a.IsLinkLocalUnicast():
		return "link-local, where clouds keep their metadata services"
	case a.IsMulticast():
		return "multicast"
	}
	if why := services[a]; why != "" {
		return why
	}
	for _, r := range refused {
		if r.prefix.Contains(a) {
			return r.why
		}
	}
	return ""
}
