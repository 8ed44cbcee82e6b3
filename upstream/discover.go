package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

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
	// be absent. Both are of a tool that was not wanted; see [Options.OnlyWanted].
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
	// in is the session in which they were listed.
	in *session
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
	c.mu.Unlock()
	c.notStale()
	tools, s, err := c.list(ctx)
	return c.record(tools, s, err)
}

// notStale begins a look: what is heard from now on makes it stale again. It returns
// what was known before.
func (c *Client) notStale() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found.stale = false
	return c.found.snapshot
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

func (c *Client) record(tools []Tool, s *session, err error) (*Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &c.found
	f.rounds++
	f.err = err
	now := c.opts.Clock()
	if err != nil {
		f.stale = true // what is known was not confirmed
		f.failures++
		f.retry = now.Add(min(backOffFirst<<min(f.failures-1, 16), backOffMost))
		return nil, err
	}
	f.failures = 0
	f.snapshot, f.in = &Snapshot{Tools: tools, At: now}, s
	return f.snapshot, nil
}

// list reads all pages, in a new session if the server forgot the old one.
func (c *Client) list(ctx context.Context) ([]Tool, *session, error) {
	for attempt := 0; ; attempt++ {
		s, err := c.connectedLocked(ctx)
		if err != nil {
			return nil, nil, err
		}
		tools, x, err := c.pages(ctx, s)
		if err == nil {
			return tools, s, nil
		}
		// Asking twice does no harm, so a connection that broke is a reason as well.
		o := x.get()
		again := forgotten(o, err) || errors.Is(err, mcp.ErrConnectionClosed) || (o.status == 0 && errors.Is(err, ErrUnreachable))
		if again {
			c.drop(s)
		}
		if !again || attempt > 0 || ctx.Err() != nil {
			return nil, nil, c.explainList(ctx, x, err)
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
	cursor, sum := "", 0
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
		sum = c.keep(page, sum)
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
		return fmt.Errorf("%w: a page is larger than %d bytes or %d values", ErrDiscovery, c.opts.MaxAnswer, strictjson.MaxValues)
	case o.refused:
		return fmt.Errorf("%w: it answered tools/list with the error %d", ErrDiscovery, o.code)
	default:
		return c.explain(ctx, x, err)
	}
}
