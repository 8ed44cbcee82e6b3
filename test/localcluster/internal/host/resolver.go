package host

import (
	"net"
	"os"
	"strings"
)

// resolverFiles are read in order; the second is where systemd-resolved keeps
// the servers that it hides behind a loopback address in the first.
var resolverFiles = []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}

// NameServers returns the machine's name servers that pods can reach.
func NameServers() []string {
	for _, file := range resolverFiles {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if servers := parseNameServers(string(data)); len(servers) > 0 {
			return servers
		}
	}
	return nil
}

// parseNameServers leaves out loopback addresses, which mean another host in
// every pod, and IPv6, which pods do not have.
func parseNameServers(resolvConf string) []string {
	var servers []string
	for line := range strings.Lines(resolvConf) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if ip := net.ParseIP(fields[1]); ip != nil && ip.To4() != nil && !ip.IsLoopback() {
			servers = append(servers, fields[1])
		}
	}
	return servers
}
