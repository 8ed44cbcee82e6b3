// Package toolsources tests on a real API server what a ToolNamespace's status says
// about an upstream MCP server, and that turns get all of its tools or none.
package toolsources
