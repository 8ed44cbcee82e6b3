package files

import (
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Tools binds the twelve tools to the provider that serves the plane, sorted by name.
func Tools(provider kernel.ResourceProvider) []kernel.Tool {
	definitions := Definitions()
	tools := make([]kernel.Tool, len(definitions))
	for i := range definitions {
		tools[i] = kernel.NewResourceTool(definitions[i], provider)
	}
	return tools
}

// Definitions returns the twelve definitions, sorted by name. Each call returns
// fresh ones.
func Definitions() []contract.ToolDefinition {
	return append(writeDefinitions(), append(readDefinitions(), snapshotDefinitions()...)...)
}

type class int

const (
	reads class = iota
	writes
	destroys
)

func define(verb, action string, class class, description string, in, out contract.Object) contract.ToolDefinition {
	d := contract.ToolDefinition{
		Name: Namespace + "." + verb, Description: description, Namespace: Namespace, Source: Source,
		ReadWrite: contract.ClassWrite, InputSchema: in, OutputSchema: out,
		RequiredCapability: contract.CapabilityRequirement{
			Resource: contract.ResourceRef{Namespace: Namespace, Path: contract.Path{}}, Action: action,
		},
	}
	readOnly, destructive := class == reads, class == destroys
	d.Annotations = &contract.ToolAnnotations{ReadOnly: &readOnly, Destructive: &destructive}
	if class == reads {
		d.ReadWrite, d.Annotations.Idempotent = contract.ClassRead, &readOnly
	}
	return d
}

func writeDefinitions() []contract.ToolDefinition {
	return []contract.ToolDefinition{
		define("append", ActionAppend, writes,
			"Append to a file, which is made when it does not exist. Concurrent appends all survive, each whole.",
			input([]string{"content"}, pathInBelow, content, expectedVersion, metadata), contract.Object(written)),
		define("create", ActionCreate, writes,
			"Create a file with its missing folders. Fails with already_exists when there is something at the path.",
			input([]string{"content"}, pathInBelow, content, metadata), contract.Object(written)),
		define("delete", ActionDelete, destroys,
			"Delete a file or a folder. A folder that is not empty needs recursive.",
			input(nil, pathInBelow, expectedVersion, flag("recursive", "Also delete everything below a folder.")),
			output("path deleted", pathOut, `"deleted":`+count)),
	}
}

func readDefinitions() []contract.ToolDefinition {
	return []contract.ToolDefinition{
		define("grep", ActionGrep, reads,
			"Find the lines of a file, or of all text files below a folder, that hold a literal text or match a regular expression (RE2 syntax).",
			input([]string{"pattern"}, pathIn, text("pattern", "What to look for inside a line.", "8192"),
				`"mode":{"type":"string","enum":["literal","regex"],"default":"literal","description":"How the pattern is read."}`,
				flag("caseSensitive", "Tell upper from lower case."),
				bounded("contextBefore", "0", "100", "0", "Lines to show before each match."),
				bounded("contextAfter", "0", "100", "0", "Lines to show after each match.")),
			output("path matches filesSearched filesSkipped truncated", pathOut,
				`"matches":{"type":"array","items":{"type":"object","required":["path","line","text"],"properties":{`+pathOut+
					`,"line":{"type":"integer","minimum":1},"text":{"type":"string"},"cut":{"type":"boolean"},"before":`+lines+`,"after":`+lines+`}}}`,
				`"filesSearched":`+count, `"filesSkipped":`+count, `"truncated":{"type":"boolean"}`)),
		define("list", ActionList, reads, "List what is in a folder, by name.",
			input(nil, pathIn),
			output("path entries truncated", pathOut,
				`"entries":{"type":"array","items":{"type":"object","required":["name","type","modifiedAt"],"properties":{"name":{"type":"string"},"type":`+
					fileType+`,"size":`+count+`,"modifiedAt":`+instant+`}}}`,
				`"omitted":`+count, `"truncated":{"type":"boolean"}`)),
		define("read", ActionRead, reads, "Read a whole file. Content that is not UTF-8 text comes as base64.",
			input(nil, pathIn),
			output("path encoding content size version modifiedAt", pathOut,
				`"encoding":{"type":"string","enum":["utf-8","base64"]},"content":{"type":"string"},"size":`+count+
					`,"version":`+version+`,"modifiedAt":`+instant)),
		define("replace", ActionReplace, destroys,
			"Replace the whole content of a file that exists, at once: a reader sees the old or the new content.",
			input([]string{"content"}, pathInBelow, content, expectedVersion), contract.Object(written)),
		define("search", ActionSearch, reads,
			"Search the text files below a folder by words and return the most relevant ones with an excerpt.",
			input([]string{"query"}, pathIn, text("query", "Words to look for.", "8192"),
				bounded("limit", "1", "100", "20", "How many files to return at most.")),
			output("path hits total", pathOut,
				`"hits":{"type":"array","items":{"type":"object","required":["path","text","line"],"properties":{`+pathOut+
					`,"text":{"type":"string"},"line":{"type":"integer","minimum":1}}}}`, `"total":`+count)),
	}
}

func snapshotDefinitions() []contract.ToolDefinition {
	return []contract.ToolDefinition{
		define("snapshot.create", ActionSnapshotCreate, writes, "Keep the present state of a file or a folder to come back to.",
			input(nil, pathIn, text("label", "A name for people.", "256")),
			output("path snapshot", pathOut, `"snapshot":`+snapshot)),
		define("snapshot.list", ActionSnapshotList, reads, "List the snapshots made of exactly this path, the newest first.",
			input(nil, pathIn, bounded("limit", "1", "100", "20", "How many snapshots to return at most.")),
			output("path snapshots truncated", pathOut,
				`"snapshots":{"type":"array","items":`+snapshot+`},"truncated":{"type":"boolean"}`)),
		define("snapshot.restore", ActionSnapshotRestore, destroys,
			"Bring a path back to the state a snapshot of it holds. What was made since is lost.",
			input([]string{"snapshotId"}, pathIn, text("snapshotId", "The id of a snapshot of this path.", "256"), expectedVersion),
			output("path snapshotId files", pathOut, `"snapshotId":{"type":"string"},"files":`+count+`,"version":`+version)),
		define("stat", ActionStat, reads, "Describe a file or a folder: type, size, version of its content, metadata.",
			input(nil, pathIn),
			output("path type modifiedAt", pathOut,
				`"type":`+fileType+`,"size":`+count+`,"modifiedAt":`+instant+`,"version":`+version+`,"metadata":{"type":"object"}`)),
	}
}
