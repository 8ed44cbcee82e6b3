package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Keys of _meta.
const (
	metaCatalogHash = "sharedos/catalogHash"
	metaExecutionID = "sharedos/executionId"
	metaNamespace   = "sharedos/namespace"
	metaSource      = "sharedos/source"
	metaStatus      = "sharedos/status"
	metaCode        = "sharedos/code"
	metaContent     = "sharedos/content"
)

// view is one catalogue as the server serves it. It does not change.
type view struct {
	executionID string
	hash        string
	list        []byte // the result of tools/list
	tools       map[string]*contract.PublishedTool
	// portable and displayed lead from those forms to the canonical name; a form
	// that two tools share leads to none.
	portable  map[string]string
	displayed map[string]string
}

func newView(c contract.Catalogue, serverName string) (*view, error) {
	byName := func(a, b contract.PublishedTool) int { return contract.CompareCodeUnits(a.Name, b.Name) }
	tools := c.Tools
	if !slices.IsSortedFunc(tools, byName) {
		tools = slices.Clone(tools)
		slices.SortFunc(tools, byName)
	}
	v := &view{
		executionID: c.ExecutionID, hash: c.CatalogHash,
		tools:    make(map[string]*contract.PublishedTool, len(tools)),
		portable: make(map[string]string, len(tools)), displayed: make(map[string]string, len(tools)),
	}
	list := []byte(`{"tools":[`)
	for i := range tools {
		var err error
		if i > 0 {
			list = append(list, ',')
		}
		if list, err = appendTool(list, &tools[i]); err != nil {
			return nil, fmt.Errorf("publish tool %q: %w", tools[i].Name, err)
		}
		v.tools[tools[i].Name] = &tools[i]
	}
	for i := range tools {
		name := tools[i].Name
		lead(v.portable, PortableName(name), name)
		lead(v.displayed, HarnessToolAlias(serverName, name), name)
	}
	list = canonical.AppendString(append(list, `],"_meta":{"`+metaCatalogHash+`":`...), c.CatalogHash)
	list = canonical.AppendString(append(list, `,"`+metaExecutionID+`":`...), c.ExecutionID)
	list = append(list, "}}"...)
	v.list = list
	return v, nil
}

func lead(names map[string]string, from, to string) {
	if _, taken := names[from]; taken {
		to = ""
	}
	names[from] = to
}

// resolve maps the name that a harness sent to the canonical one. What matches
// nothing, or more than one tool, is left to the kernel to refuse and record.
func (v *view) resolve(name string) (tool string, published *contract.PublishedTool) {
	if v == nil {
		return name, nil
	}
	if p, ok := v.tools[name]; ok {
		return name, p
	}
	for _, names := range []map[string]string{v.portable, v.displayed} {
		if to := names[name]; to != "" {
			return to, v.tools[to]
		}
	}
	return name, nil
}

// EncodeTool returns a published tool as tools/list shows it: the hints as
// annotations, namespace and source below _meta, and nothing about authority.
func EncodeTool(tool contract.PublishedTool) (json.RawMessage, error) {
	return appendTool(nil, &tool)
}

func appendTool(dst []byte, t *contract.PublishedTool) ([]byte, error) {
	dst = canonical.AppendString(append(dst, `{"name":`...), t.Name)
	dst = canonical.AppendString(append(dst, `,"description":`...), t.Description)
	dst, err := appendCompact(append(dst, `,"inputSchema":`...), t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	if len(t.OutputSchema) > 0 {
		if dst, err = appendCompact(append(dst, `,"outputSchema":`...), t.OutputSchema); err != nil {
			return nil, fmt.Errorf("output schema: %w", err)
		}
	}
	if t.Annotations != nil {
		hints, err := json.Marshal(t.Annotations)
		if err != nil {
			return nil, fmt.Errorf("annotations: %w", err)
		}
		dst = append(append(dst, `,"annotations":`...), hints...)
	}
	if m := t.Metadata; m != nil {
		dst = canonical.AppendString(append(dst, `,"_meta":{"`+metaNamespace+`":`...), m.Namespace)
		dst = canonical.AppendString(append(dst, `,"`+metaSource+`":`...), m.Source)
		dst = append(dst, '}')
	}
	return append(dst, '}'), nil
}

// appendCompact appends JSON without white space; its digits and escapes stay.
func appendCompact(dst, raw []byte) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	if err := json.Compact(buf, raw); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
