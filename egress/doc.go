// Package egress decides which addresses the process may open connections to on
// behalf of somebody's configuration: an upstream MCP server, a provider.
//
// What is judged is the address of the socket at the moment it is connected, after
// every look-up, so that a name which changes between look-up and dial, and a
// redirect, gain nothing. Addresses that lead back into the machine or to its cloud
// are refused unless the platform team allows them: loopback, link-local with the
// clouds' metadata services, unspecified, multicast, broadcast and reserved ones, in
// IPv4 and IPv6, and in IPv6 also when they are written inside of an address that is
// translated (IPv4-mapped, IPv4-compatible, NAT64, 6to4, Teredo). Private ranges
// are where Services live, and are open unless Only narrows.
package egress
