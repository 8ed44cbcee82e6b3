package upstream

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Want has the schemas of these tools kept, besides those that were wanted before, when
// [Options.OnlyWanted] is set. Those that are not known yet are found at the next look.
func (c *Client) Want(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted == nil {
		c.wanted = map[string]bool{}
	}
	for _, name := range names {
		if c.wanted[name] {
			continue
		}
		c.wanted[name] = true
		if c.found.snapshot == nil {
			continue
		}
		if tool, ok := c.found.snapshot.Find(name); ok && tool.Flaw == "" && tool.InputSchema == nil {
			c.found.stale = true
		}
	}
}

// keep leaves out what is not wanted of a page's tools, and what is over the limit of
// all schemas; it returns the sum with theirs.
func (c *Client) keep(page []Tool, sum int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range page {
		t := &page[i]
		if c.opts.OnlyWanted && !c.wanted[t.Name] {
			t.Description, t.InputSchema, t.OutputSchema = t.Name, nil, nil
			continue
		}
		size := len(t.InputSchema) + len(t.OutputSchema)
		if sum+size > MaxSchemas {
			t.InputSchema, t.OutputSchema = nil, nil
			t.Flaw = fmt.Sprintf("inputSchema: the schemas of the server's tools are larger than %d bytes together", MaxSchemas)
			continue
		}
		sum += size
	}
	return sum
}

// sorted orders tools by name and marks those that share one.
func sorted(tools []Tool) []Tool {
	slices.SortStableFunc(tools, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	out := tools[:0]
	for i := range tools {
		if len(out) > 0 && out[len(out)-1].Name == tools[i].Name {
			out[len(out)-1].Flaw = "the server lists it more than once"
			continue
		}
		out = append(out, tools[i])
	}
	return out
}

// parsePage reads the result of tools/list. One tool that is none is left out or
// marked; it does not take the others with it.
func parsePage(raw []byte) (tools []Tool, next string, err error) {
	node, err := strictjson.Parse(raw)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrDiscovery, err)
	}
	list, ok := node.Member("tools")
	if !ok || list.Kind != strictjson.Array {
		return nil, "", fmt.Errorf("%w: tools is not a list", ErrDiscovery)
	}
	for i := range list.Children {
		name, _ := list.Children[i].Member("name")
		if name.Text == "" || len(name.Text) > contract.MaxIdentifier {
			continue // there is no way to declare it
		}
		tools = append(tools, parseTool(name.Text, list.Children[i]))
	}
	cursor, _ := node.Member("nextCursor")
	return tools, cursor.Text, nil
}

func parseTool(name string, node strictjson.Node) Tool {
	t := Tool{Name: name, Description: name}
	for _, member := range []string{"title", "description"} {
		if text, _ := node.Member(member); clip(text.Text, contract.MaxDescription) != "" {
			t.Description = clip(text.Text, contract.MaxDescription)
		}
	}
	input, ok := node.Member("inputSchema")
	if !ok || input.Kind != strictjson.Object {
		t.Flaw = "inputSchema: must be an object"
		return t
	}
	output, has := node.Member("outputSchema")
	if max(len(input.Raw), len(output.Raw)) > MaxSchema {
		t.Flaw = fmt.Sprintf("inputSchema or outputSchema: larger than %d bytes", MaxSchema)
		return t
	}
	t.InputSchema = bytes.Clone(input.Raw)
	if has && output.Kind == strictjson.Object {
		t.OutputSchema = bytes.Clone(output.Raw)
	}
	digest, err := canonical.Hash(t.InputSchema)
	if err != nil {
		t.Flaw = "inputSchema: " + err.Error()
		return t
	}
	t.Digest = digest
	return t
}
