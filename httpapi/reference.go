package httpapi

import (
	"fmt"
	"reflect"
	"strings"
)

// Reference is the table of routes and of error answers in Markdown.
func Reference() string {
	var out strings.Builder
	out.WriteString("# HTTP API reference\n\nMade from the table of routes: `make docs` writes it anew. The same as OpenAPI 3.1 is\n[openapi.json](openapi.json), and [the guide](../http-api.md) explains it.\n\n")
	out.WriteString("## Routes\n\n| method | path | request body | 2xx body | what |\n|---|---|---|---|---|\n")
	table := routes()
	for i := range table {
		rt := &table[i]
		response := name(rt.response)
		if rt.list {
			response += "[]"
		}
		status := "200"
		if rt.accepted {
			status = "200, 202"
		}
		fmt.Fprintf(&out, "| %s | `%s` | %s | %s: %s | %s |\n", rt.method, rt.path, name(rt.request), status, response, rt.summary)
	}
	out.WriteString("\n`/health` alone resolves no context. Every other request, also one with an unknown path\nor a wrong verb, says who is calling first.\n\n")
	for i := range table {
		rt := &table[i]
		fmt.Fprintf(&out, "- `%s %s` %s\n", rt.method, rt.path, rt.description)
	}
	out.WriteString("\n## Error answers\n\n| status | error.code | cause |\n|---|---|---|\n")
	for _, e := range errorStatuses() {
		fmt.Fprintf(&out, "| %d | `%s` | %s |\n", e.status, strings.Join(e.codes, "`, `"), e.causes)
	}
	return out.String()
}

func name(t reflect.Type) string {
	switch t {
	case nil:
		return "-"
	case rawType:
		return "OpenAPI 3.1"
	default:
		return title(t.Name())
	}
}
