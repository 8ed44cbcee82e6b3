package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Times of discovering.
const (
	// freshFor is how long a list is taken for the server's own without asking again.
	freshFor = 2 * time.Minute
	// backOffFirst and backOffMost are the waits after a failure.
	backOffFirst = time.Second
	backOffMost  = time.Minute
)

// Tool is one tool as the server describes it.
type Tool struct {
	Name string
	// Description is the server's, or its title, or the name.
	Description string
	// InputSchema and OutputSchema are the server's own, to the digit; the second may
	// be absent.
	InputSchema, OutputSchema contract.Object
	// Digest is the SHA-256 of the input schema's canonical JSON; empty when it has none.
	Digest string
	// Flaw says why the tool cannot be used at all; empty when it can.
	Flaw string
}

// Snapshot is a server's tools at one time, sorted by name. It does not change.
type Snapshot struct {
	Tools []Tool
	At    time.Time
}

// Find returns the tool of that name.
func (s *Snapshot) Find(name string) (*Tool, bool) {
	i, ok := slices.BinarySearchFunc(s.Tools, name, func(t Tool, name string) int { return cmp.Compare(t.Name, name) })
	if !ok {
		return nil, false
	}
	return &s.Tools[i], true
}

// discovery is what is known of the tools.
type discovery struct {
	snapshot *Snapshot
	// rounds counts the attempts that came to an end, stale that the next look must ask.
	rounds uint64
	stale  bool
	// err, failures and retry are about attempts since the last good one.
	err      error
	failures int
	retry    time.Time
}

// stale notes that the tools may have changed, and says so.
func (c *Client) stale() {
	c.mu.Lock()
	c.found.stale = true
	c.mu.Unlock()
	c.opts.Changed()
}

// Tools returns the server's tools: those found a short while ago, or else found now.
// After a failure it answers with that failure until it is time to try again, so that a
// server which does not answer keeps nobody waiting twice.
func (c *Client) Tools(ctx context.Context) (*Snapshot, error) {
	c.mu.Lock()
	found, closed, now := c.found, c.closed, c.opts.Clock()
	c.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case found.err != nil && now.Before(found.retry):
		return nil, found.err
	case found.err == nil && found.snapshot != nil && !found.stale && now.Sub(found.snapshot.At) < freshFor:
		return found.snapshot, nil
	}
	return c.Discover(ctx)
}

// Discover asks the server for its tools. Whoever asks while another one does shares
// the answer. Its error wraps one of this package's.
func (c *Client) Discover(ctx context.Context) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, min(connectTimeout, c.opts.Timeout))
	defer cancel()
	c.mu.Lock()
	rounds := c.found.rounds
	c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.leave()
	c.mu.Lock()
	if c.found.rounds > rounds+1 { // one that began after we asked
		defer c.mu.Unlock()
		return c.found.snapshot, c.found.err
	}
	c.found.stale = false
	c.mu.Unlock()
	tools, err := c.list(ctx)
	return c.record(tools, err)
}

// RetryAfter is how long to wait before the server is asked again: 0 when the last
// answer was good.
func (c *Client) RetryAfter() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found.err == nil {
		return 0
	}
	return max(c.found.retry.Sub(c.opts.Clock()), time.Millisecond)
}

func (c *Client) record(tools []Tool, err error) (*Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &c.found
	f.rounds++
	f.err = err
	now := c.opts.Clock()
	if err != nil {
		f.failures++
		f.retry = now.Add(min(backOffFirst<<min(f.failures-1, 16), backOffMost))
		return nil, err
	}
	f.failures = 0
	f.snapshot = &Snapshot{Tools: tools, At: now}
	return f.snapshot, nil
}

// list reads all pages, in a new session if the server forgot the old one.
func (c *Client) list(ctx context.Context) ([]Tool, error) {
	for attempt := 0; ; attempt++ {
		s, err := c.connectedLocked(ctx)
		if err != nil {
			return nil, err
		}
		tools, x, err := c.pages(ctx, s)
		if err == nil {
			return tools, nil
		}
		again := forgotten(x.get(), err)
		if again || errors.Is(err, mcp.ErrConnectionClosed) {
			c.drop(s)
		}
		if !again || attempt > 0 {
			return nil, c.explainList(ctx, x, err)
		}
	}
}

// forgotten reports whether a request was turned away because its session is gone. It
// was surely not executed.
func forgotten(o outcome, err error) bool {
	if o.session && (o.status == http.StatusNotFound || o.status == http.StatusBadRequest) {
		return true
	}
	return errors.Is(err, mcp.ErrConnectionClosed) && !o.sent
}

func (c *Client) pages(ctx context.Context, s *session) ([]Tool, *exchange, error) {
	var tools []Tool
	cursor := ""
	for range MaxPages {
		x := &exchange{}
		_, err := s.ListTools(withExchange(ctx, x), &mcp.ListToolsParams{Cursor: cursor})
		o := x.get()
		if err != nil {
			return nil, x, err
		}
		page, next, err := parsePage(o.result)
		if err != nil {
			return nil, x, err
		}
		if tools = append(tools, page...); len(tools) > MaxTools {
			return nil, x, fmt.Errorf("%w: more than %d", ErrTooManyTools, MaxTools)
		}
		if next == "" {
			return sorted(tools), x, nil
		}
		if next == cursor {
			return nil, x, fmt.Errorf("%w: its pages never end", ErrDiscovery)
		}
		cursor = next
	}
	return nil, &exchange{}, fmt.Errorf("%w: more than %d pages", ErrDiscovery, MaxPages)
}

func (c *Client) explainList(ctx context.Context, x *exchange, err error) error {
	o := x.get()
	switch {
	case errors.Is(err, ErrTooManyTools) || errors.Is(err, ErrDiscovery):
		return err
	case o.tooLarge:
		return fmt.Errorf("%w: a page is larger than %d bytes", ErrDiscovery, c.opts.MaxAnswer)
	case o.refused:
		return fmt.Errorf("%w: it answered tools/list with the error %d", ErrDiscovery, o.code)
	default:
		return c.explain(ctx, x, err)
	}
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
	t.InputSchema = bytes.Clone(input.Raw)
	if output, ok := node.Member("outputSchema"); ok && output.Kind == strictjson.Object {
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
