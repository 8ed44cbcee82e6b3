package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sharedos-dev/operator/kernel/canonical"
)

// PolicyMode says whether a harness may have servers of its own.
type PolicyMode string

// The modes.
const (
	// ModeStrict: everything outside the harness goes through this boundary.
	ModeStrict PolicyMode = "strict"
	// ModeHybrid: the harness has other servers too, which this boundary never sees.
	ModeHybrid PolicyMode = "hybrid"
)

// ToolPolicy describes where a harness's tools come from. It is a record of a
// configuration, not a permission.
type ToolPolicy struct {
	Mode PolicyMode `json:"mode"`
	// ManagedMCP are the names of the servers that are this boundary.
	ManagedMCP []string `json:"managedMcp"`
	// HarnessLocal are the harness's own tools.
	HarnessLocal []string `json:"harnessLocal"`
	// ExternalDirect are the names of MCP servers configured independently.
	ExternalDirect []string `json:"externalDirect"`
}

// ErrInvalidPolicy says that a tool policy contradicts itself.
var ErrInvalidPolicy = errors.New("invalid tool policy")

// NewToolPolicy completes a policy: the mode is strict unless there are external
// servers, and the managed server is [DefaultServerName] if none is named. It fails
// with [ErrInvalidPolicy].
func NewToolPolicy(p ToolPolicy) (ToolPolicy, error) {
	if p.Mode == "" {
		p.Mode = ModeStrict
		if len(p.ExternalDirect) > 0 {
			p.Mode = ModeHybrid
		}
	}
	if len(p.ManagedMCP) == 0 {
		p.ManagedMCP = []string{DefaultServerName}
	}
	p.ManagedMCP = append([]string{}, p.ManagedMCP...)
	p.HarnessLocal = append([]string{}, p.HarnessLocal...)
	p.ExternalDirect = append([]string{}, p.ExternalDirect...)
	switch {
	case p.Mode != ModeStrict && p.Mode != ModeHybrid:
		return ToolPolicy{}, fmt.Errorf("%w: unknown mode %q", ErrInvalidPolicy, p.Mode)
	case p.Mode == ModeStrict && len(p.ExternalDirect) > 0:
		return ToolPolicy{}, fmt.Errorf("%w: strict, but with external servers", ErrInvalidPolicy)
	}
	for _, list := range [][]string{p.ManagedMCP, p.HarnessLocal, p.ExternalDirect} {
		seen := make(map[string]struct{}, len(list))
		for _, name := range list {
			if _, twice := seen[name]; twice || !identifier(name) {
				return ToolPolicy{}, fmt.Errorf("%w: entry %q is repeated or no identifier", ErrInvalidPolicy, name)
			}
			seen[name] = struct{}{}
		}
	}
	for _, name := range p.ManagedMCP {
		if slices.Contains(p.ExternalDirect, name) {
			return ToolPolicy{}, fmt.Errorf("%w: server %q is managed and external", ErrInvalidPolicy, name)
		}
	}
	return p, nil
}

// PolicyHash is the hash of a policy that [NewToolPolicy] completed.
func PolicyHash(p ToolPolicy) (string, error) {
	hash, err := canonical.Hash(p)
	if err != nil {
		return "", fmt.Errorf("hash tool policy: %w", err)
	}
	return hash, nil
}

// ToolClass is where a tool comes from.
type ToolClass string

// The classes.
const (
	ToolManaged        ToolClass = "managed"
	ToolHarnessLocal   ToolClass = "harness_local"
	ToolExternalDirect ToolClass = "external_direct"
	ToolUnknown        ToolClass = "unknown"
)

// ClassifyTool says where a tool that a harness used comes from. The tool is managed
// if it is a published one, by its canonical name, its portable form or its alias
// under a managed server; external if it is an alias under an external server.
func ClassifyTool(p ToolPolicy, published []string, tool string) ToolClass {
	for _, name := range published {
		if tool == name || tool == PortableName(name) {
			return ToolManaged
		}
		for _, server := range p.ManagedMCP {
			if tool == HarnessToolAlias(server, name) {
				return ToolManaged
			}
		}
	}
	if slices.Contains(p.HarnessLocal, tool) {
		return ToolHarnessLocal
	}
	for _, server := range p.ExternalDirect {
		if rest, ok := strings.CutPrefix(tool, "mcp__"+server+"__"); ok && rest != "" {
			return ToolExternalDirect
		}
	}
	return ToolUnknown
}
