package mcp

import "strings"

// DefaultServerName is the name a harness knows this server by.
const DefaultServerName = "sharedos"

// PortableName is the tool name with every dot replaced by an underscore, for
// clients that allow no dots.
func PortableName(tool string) string { return strings.ReplaceAll(tool, ".", "_") }

// HarnessToolAlias is the name under which a harness shows a server's tool to its
// model: mcp__<server>__<tool>, where every character of the tool outside
// [A-Za-z0-9_] is an underscore. It is presentation, never identity.
func HarnessToolAlias(server, tool string) string {
	var b strings.Builder
	b.Grow(len("mcp____") + len(server) + len(tool))
	b.WriteString("mcp__")
	b.WriteString(server)
	b.WriteString("__")
	for _, r := range tool {
		if (r >= '0' && r <= '9') || (r >= 'A' && r <= 'Z') || (r >= 'a' && r <= 'z') {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	return b.String()
}
