package upstream

import (
	"context"
	"sync"
)

// exchange is one request of the protocol and what became of it. The door fills it
// while the SDK waits; a caller that gave up may look at it meanwhile.
type exchange struct {
	mu      sync.Mutex
	outcome outcome
}

// outcome is what an exchange has come to.
type outcome struct {
	// sent is true when the request may have left.
	sent bool
	// status is the HTTP status, 0 without an answer.
	status int
	// session is true when the request was one of a session.
	session bool
	// result is the result's JSON, nil without one.
	result []byte
	// code and message are of the protocol's error.
	code    int64
	message string
	refused bool // there is a protocol error
	// tooLarge and malformed say why an answer was not taken.
	tooLarge, malformed bool
}

func (x *exchange) set(change func(*outcome)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change(&x.outcome)
}

func (x *exchange) get() outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.outcome
}

type exchangeKey struct{}

// withExchange makes the next request of the protocol under ctx fill x.
func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}
