package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// protocolVersion is offered first; a server may choose an older one. The versions
// without a handshake are not spoken yet.
const protocolVersion = "2025-11-25"

// resumptions is how often the SDK tries to go on with a stream that broke off.
const resumptions = 2

// session is one connection of the protocol.
type session struct {
	*mcp.ClientSession
	door   *door
	cancel context.CancelFunc
	once   sync.Once
}

// end closes the session and waits for what it ran. Calls that are running may take
// as long as grace.
func (s *session) end(grace time.Duration) {
	s.once.Do(func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.Close() // the other side may be gone
		}()
		timer := time.NewTimer(grace)
		select {
		case <-done:
		case <-timer.C:
		}
		timer.Stop()
		s.cancel()
		<-done
		s.door.running.Wait()
	})
}

// closeGrace is how long a session that is closed may take to say good-bye.
const closeGrace = time.Second

// connect makes a session: over Streamable HTTP, or as servers did it before, if the
// server refuses that in the way the protocol foresees.
func (c *Client) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, min(connectTimeout, c.opts.Timeout))
	defer cancel()
	s, x, err := c.dial(ctx, false)
	if err == nil {
		return s, nil
	}
	status := x.get().status
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		if old, _, failed := c.dial(ctx, true); failed == nil {
			return old, nil
		}
	}
	return nil, c.explain(ctx, x, err)
}

// dial tries one transport. Its exchange is the handshake's.
func (c *Client) dial(ctx context.Context, legacy bool) (*session, *exchange, error) {
	d := &door{
		base: c.base, limit: c.opts.MaxAnswer, headers: c.opts.Headers, legacy: legacy, lost: c.stale,
		transport: func() http.RoundTripper { return c.transport.Load() },
	}
	x := &exchange{}
	// The session outlives the call that makes it, and not the attempt if that fails.
	life, cancel := context.WithCancel(withExchange(context.WithoutCancel(ctx), x))
	stop := context.AfterFunc(ctx, cancel)
	client := &http.Client{
		Transport:     d,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var transport mcp.Transport = &mcp.StreamableClientTransport{
		Endpoint: c.opts.URL, HTTPClient: client, MaxRetries: resumptions, MaxEventSize: -1, // the door has a limit
	}
	if legacy {
		transport = &mcp.SSEClientTransport{Endpoint: c.opts.URL, HTTPClient: client, MaxEventSize: -1}
	}
	sdk := mcp.NewClient(c.implementation(), &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.stale() },
		MultiRoundTrip:         &mcp.MultiRoundTripOptions{Disabled: true},
	})
	connection, err := sdk.Connect(life, transport, &mcp.ClientSessionOptions{ProtocolVersion: protocolVersion})
	if err == nil && !stop() {
		_ = connection.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		cancel()
		d.running.Wait()
		return nil, x, err
	}
	return &session{ClientSession: connection, door: d, cancel: cancel}, x, nil
}

// explain says why there is no session. It holds nothing that the server said but its
// status.
func (c *Client) explain(ctx context.Context, x *exchange, err error) error {
	o := x.get()
	switch {
	case errors.Is(err, errHeaders):
		return fmt.Errorf("%w: %w", ErrCredentials, err)
	case o.status == http.StatusUnauthorized || o.status == http.StatusForbidden:
		return fmt.Errorf("%w: %s answered %d", ErrCredentials, c.base.Host, o.status)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s did not answer in time", ErrUnreachable, c.base.Host)
	case o.status >= 300:
		return fmt.Errorf("%w: %s answered %d to initialize", ErrDiscovery, c.base.Host, o.status)
	case o.status != 0:
		return fmt.Errorf("%w: what %s answered to initialize is not of the protocol", ErrDiscovery, c.base.Host)
	default:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
}
