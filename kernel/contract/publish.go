package contract

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf16"

	"github.com/sharedos-dev/operator/kernel/canonical"
)

// CatalogHashFields returns the fields of a published tool that take part in the
// catalogue hash, sorted. Nothing else does.
func CatalogHashFields() []string {
	return []string{"annotations", "description", "inputSchema", "metadata", "name", "outputSchema"}
}

// PublishTool projects a definition to what may cross to a harness. The required
// capability, metadata of the definition and everything about authority stay behind.
func PublishTool(d ToolDefinition) PublishedTool {
	hints := &PublishedAnnotations{}
	if d.Annotations != nil {
		hints.ReadOnlyHint = d.Annotations.ReadOnly
		hints.DestructiveHint = d.Annotations.Destructive
		hints.IdempotentHint = d.Annotations.Idempotent
	}
	if hints.ReadOnlyHint == nil {
		readOnly := d.ReadWrite == ClassRead
		hints.ReadOnlyHint = &readOnly
	}
	return PublishedTool{
		Name:         d.Name,
		Description:  d.Description,
		InputSchema:  d.InputSchema,
		OutputSchema: d.OutputSchema,
		Annotations:  hints,
		Metadata:     &PublishedMetadata{Namespace: d.Namespace, Source: d.Source},
	}
}

// PublishTools projects definitions and sorts them by name.
func PublishTools(defs []ToolDefinition) []PublishedTool {
	tools := make([]PublishedTool, 0, len(defs))
	for i := range defs {
		tools = append(tools, PublishTool(defs[i]))
	}
	slices.SortFunc(tools, func(a, b PublishedTool) int { return CompareCodeUnits(a.Name, b.Name) })
	return tools
}

// CatalogHash returns the hash of the tools in name order. The order they are
// given in does not matter.
func CatalogHash(tools []PublishedTool) (string, error) {
	sorted := slices.Clone(tools)
	slices.SortFunc(sorted, func(a, b PublishedTool) int { return CompareCodeUnits(a.Name, b.Name) })
	if sorted == nil {
		sorted = []PublishedTool{}
	}
	hash, err := canonical.Hash(sorted)
	if err != nil {
		return "", fmt.Errorf("hash catalogue: %w", err)
	}
	return hash, nil
}

// CompareCodeUnits orders strings by their UTF-16 code units.
func CompareCodeUnits(a, b string) int {
	if isASCII(a) && isASCII(b) {
		return cmp.Compare(a, b)
	}
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

// Repeatable reports whether a call to a tool of this definition may be
// repeated when its answer was lost: it only reads, or says it is idempotent.
func (d ToolDefinition) Repeatable() bool {
	return d.ReadWrite == ClassRead || (d.Annotations != nil && d.Annotations.Idempotent != nil && *d.Annotations.Idempotent)
}
