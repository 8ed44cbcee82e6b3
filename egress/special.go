package egress

import "net/netip"

// Networks by which an IPv6 address carries an IPv4 address that is reached in its
// stead, with the place of the four bytes in it.
var translated = [...]struct {
	prefix netip.Prefix
	at     int
	// inverted is how Teredo writes its client.
	inverted bool
}{
	{netip.MustParsePrefix("::ffff:0:0/96"), 12, false},   // IPv4-mapped, RFC 4291 2.5.5.2
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, false}, // IPv4-translated, RFC 2765
	{netip.MustParsePrefix("64:ff9b::/96"), 12, false},    // NAT64, RFC 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12, false},  // NAT64 of a site, RFC 8215, with the suffix of a /96
	{netip.MustParsePrefix("2002::/16"), 2, false},        // 6to4, RFC 3056
	{netip.MustParsePrefix("2001::/32"), 12, true},        // Teredo, RFC 4380
	{netip.MustParsePrefix("::/96"), 12, false},           // IPv4-compatible, RFC 4291 2.5.5.1
}

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
		four := [4]byte(raw[t.at : t.at+4])
		if t.inverted {
			for i := range four {
				four[i] = ^four[i]
			}
		}
		out = append(out, netip.AddrFrom4(four))
	}
	return out
}

// Networks that lead back into the machine, to its cloud, or nowhere.
var refused = [...]struct {
	prefix netip.Prefix
	why    string
}{
	{netip.MustParsePrefix("100.100.100.200/32"), "a cloud's metadata service"},
	{netip.MustParsePrefix("192.0.0.192/32"), "a cloud's metadata service"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's host service"},
	{netip.MustParsePrefix("fd00:ec2::/32"), "a cloud's metadata service"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "a cloud's metadata service"},
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
	for _, r := range refused {
		if r.prefix.Contains(a) {
			return r.why
		}
	}
	return ""
}
