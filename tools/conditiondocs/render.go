package main

import (
	"fmt"
	"regexp"
	"strings"
)

const preamble = `# Conditions

Made from the Go constants by ` + "`make docs`" + `. Do not edit. The fields are in
[api.md](api.md). Every condition carries the generation it is about; one about an
older generation establishes nothing.
`

// reference is a link to a constant in a comment: [PrincipalReady].
var reference = regexp.MustCompile(`\[([A-Z]\w*)\]`)

// render returns the reference as Markdown: a section per kind, with a table for
// each group of constants.
func render(groups []group) string {
	values := map[string]string{}
	for _, group := range groups {
		for _, entry := range group.entries {
			values[entry.name] = entry.value
		}
	}
	resolve := func(doc string) string {
		return reference.ReplaceAllStringFunc(doc, func(name string) string {
			if value, ok := values[strings.Trim(name, "[]")]; ok {
				return "`" + value + "`"
			}
			return name
		})
	}
	var out strings.Builder
	out.WriteString(preamble)
	kind := ""
	for _, group := range groups {
		if found := kindOf(group.entries[0].name); found != kind {
			kind = found
			fmt.Fprintf(&out, "\n## %s\n", kind)
		}
		column := "Reason"
		if group.entries[0].isType {
			column = "Condition"
		}
		fmt.Fprintf(&out, "\n%s\n\n| %s | |\n| --- | --- |\n", resolve(group.heading), column)
		for _, entry := range group.entries {
			doc := strings.TrimPrefix(entry.doc, entry.name+" ")
			fmt.Fprintf(&out, "| `%s` | %s |\n", entry.value, resolve(strings.ReplaceAll(doc, "|", `\|`)))
		}
	}
	return out.String()
}

// kindOf returns the kind that a constant belongs to, which its name begins with.
func kindOf(name string) string {
	for _, kind := range []string{"Principal", "Grant", "ToolNamespace", "Harness", "Turn"} {
		if strings.HasPrefix(name, kind) {
			return kind
		}
	}
	return "Other"
}
