package contract

import (
	"slices"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Validate implements [Validator]. It checks the definition itself; whether its
// schemas compile is decided when it is registered.
func (d ToolDefinition) Validate() error {
	var c checks
	c.nested("name", ValidateToolName(d.Name))
	c.length("description", d.Description, MaxDescription)
	c.identifier("namespace", d.Namespace)
	c.identifier("source", d.Source)
	if d.ReadWrite != ClassRead && d.ReadWrite != ClassWrite {
		c.fail("readWrite", RuleValue, "must be read or write")
	}
	c.object("inputSchema", d.InputSchema, true)
	c.object("outputSchema", d.OutputSchema, false)
	c.nested("requiredCapability", d.RequiredCapability.Validate())
	if a := d.Annotations; a != nil {
		if d.ReadWrite == ClassRead && a.Destructive != nil && *a.Destructive {
			c.fail("annotations.destructive", RuleValue, "a read tool cannot be destructive")
		}
		if d.ReadWrite == ClassWrite && a.ReadOnly != nil && *a.ReadOnly {
			c.fail("annotations.readOnly", RuleValue, "a write tool cannot be read only")
		}
	}
	c.object("metadata", d.Metadata, false)
	return c.result()
}

// ValidateToolName checks a canonical tool name: 1 to 128 of A-Z a-z 0-9 _ . -
func ValidateToolName(name string) error {
	var c checks
	c.length("", name, MaxToolName)
	for i := range len(name) {
		b := name[i]
		letter := (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z')
		if !letter && (b < '0' || b > '9') && b != '_' && b != '.' && b != '-' {
			c.fail("", RulePattern, "must consist of A-Z, a-z, 0-9, _, . and -")
		}
	}
	return c.result()
}

// Validate implements [Validator]. The tool's name is only an Identifier: a guess
// at a malformed name must reach the kernel, be refused and be recorded.
func (t ToolCall) Validate() error {
	c := t.checkFrame()
	c.object("arguments", t.Arguments, true)
	return c.result()
}

// ValidateFrame is Validate without the arguments, for a caller that parses those
// itself.
func (t ToolCall) ValidateFrame() error {
	c := t.checkFrame()
	return c.result()
}

func (t ToolCall) checkFrame() checks {
	var c checks
	c.identifier("id", t.ID)
	c.identifier("tool", t.Tool)
	c.identifier("traceId", t.TraceID)
	c.instant("requestedAt", t.RequestedAt)
	return c
}

// Validate implements [Validator].
func (e ProtocolError) Validate() error {
	var c checks
	c.text("code", e.Code, MaxCode)
	c.length("message", e.Message, MaxMessage)
	c.object("details", e.Details, false)
	return c.result()
}

// Validate implements [Validator].
func (r ToolResult) Validate() error {
	var c checks
	c.identifier("callId", r.CallID)
	c.identifier("tool", r.Tool)
	c.answer(r.Status, r.Output, r.Error)
	c.instant("completedAt", r.CompletedAt)
	c.object("metadata", r.Metadata, false)
	return c.result()
}

// answer checks that output belongs to a success and error to everything else.
func (c *checks) answer(status Status, output Value, failure *ProtocolError) {
	switch status {
	case StatusSucceeded:
		c.value("output", output, true)
		if failure != nil {
			c.fail("error", RuleValue, "must be absent when succeeded")
		}
	case StatusDenied, StatusFailed:
		if failure == nil {
			c.fail("error", strictjson.RuleRequired, "is required when denied or failed")
			return
		}
		c.nested("error", failure.Validate())
		if len(output) > 0 {
			c.fail("output", RuleValue, "must be absent unless succeeded")
		}
	default:
		c.fail("status", RuleValue, "must be succeeded, denied or failed")
	}
}

// Validate implements [Validator].
func (p PublishedTool) Validate() error {
	var c checks
	c.nested("name", ValidateToolName(p.Name))
	c.length("description", p.Description, MaxDescription)
	c.object("inputSchema", p.InputSchema, true)
	c.object("outputSchema", p.OutputSchema, false)
	if p.Metadata != nil {
		c.optionalIdentifier("metadata.namespace", p.Metadata.Namespace)
		c.optionalIdentifier("metadata.source", p.Metadata.Source)
	}
	return c.result()
}

// Validate implements [Validator]. The hash must be the tools' own.
func (k Catalogue) Validate() error {
	var c checks
	c.version(k.Version)
	c.identifier("executionId", k.ExecutionID)
	c.items("tools", len(k.Tools), 0, MaxCatalogueTools)
	for i := range k.Tools {
		if c.err != nil {
			return c.result()
		}
		c.nested("tools"+strictjson.Index(i), k.Tools[i].Validate())
		if i > 0 && k.Tools[i-1].Name >= k.Tools[i].Name {
			c.fail("tools", RuleOrder, "must be sorted by name without repeats")
		}
	}
	if c.err == nil {
		if hash, err := CatalogHash(k.Tools); err != nil || hash != k.CatalogHash {
			c.fail("catalogHash", RuleValue, "is not the hash of the tools")
		}
	}
	return c.result()
}

// Validate implements [Validator].
func (u ToolNamespaceUpdate) Validate() error {
	var c checks
	c.uniqueTexts("enable", u.Enable, 0, MaxNamespaces)
	c.uniqueTexts("disable", u.Disable, 0, MaxNamespaces)
	if len(u.Enable)+len(u.Disable) == 0 {
		c.fail("", RuleItems, "must enable or disable at least one namespace")
	}
	for _, name := range u.Enable {
		if slices.Contains(u.Disable, name) {
			c.fail("enable", RuleUnique, "must not name a namespace that disable names")
		}
	}
	return c.result()
}

// Validate implements [Validator].
func (k ToolNamespaceCatalog) Validate() error {
	var c checks
	c.items("namespaces", len(k.Namespaces), 0, MaxNamespaces)
	names := make([]string, 0, len(k.Namespaces))
	enabled := 0
	for i, e := range k.Namespaces {
		prefix := "namespaces" + strictjson.Index(i) + "."
		c.identifier(prefix+"namespace", e.Namespace)
		c.uniqueTexts(prefix+"sources", e.Sources, 1, MaxListEntries)
		if e.ToolCount < 1 {
			c.fail(prefix+"toolCount", RuleValue, "must be positive")
		}
		names = append(names, e.Namespace)
		if e.Enabled {
			enabled++
		}
	}
	if hasDuplicate(names) {
		c.fail("namespaces", RuleUnique, "must not repeat a namespace")
	}
	want := ToolNamespaceSummary{Total: len(names), Enabled: enabled, Disabled: len(names) - enabled}
	if k.Summary != want {
		c.fail("summary", RuleValue, "does not count the namespaces")
	}
	return c.result()
}
