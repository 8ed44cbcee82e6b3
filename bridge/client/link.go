package client

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of the one connection.
const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 5 * time.Second
	// A connection on which nothing arrived for pingAfter is asked for a sign of
	// life, and given up pingTimeout later: a manager's node that vanished
	// without closing anything costs a call 10 seconds, not minutes.
	pingAfter   = 5 * time.Second
	pingTimeout = 5 * time.Second
	idleTimeout = 60 * time.Second
)

// wire is one transport, hence one HTTP/2 connection, and a signal that it is
// no longer the one to use.
type wire struct {
	*http.Transport
	retired chan struct{}
}

// link hands out the current wire. A healthy connection to a replica that does
// not lead any more would be kept for ever by net/http, so the link can be told
// to turn to a fresh one; calls still running on the old are left alone.
type link struct {
	config *tls.Config

	mu      sync.Mutex
	current *wire
}

func newLink(config *tls.Config) *link {
	l := &link{config: config}
	l.current = l.dial()
	return l
}

func (l *link) dial() *wire {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	return &wire{
		retired: make(chan struct{}),
		Transport: &http.Transport{
			Proxy:               nil, // never from the environment
			DialContext:         dialer.DialContext,
			TLSClientConfig:     l.config.Clone(),
			TLSHandshakeTimeout: handshakeTimeout,
			DisableCompression:  true,
			IdleConnTimeout:     idleTimeout,
			Protocols:           protocols,
			HTTP2: &http.HTTP2Config{
				StrictMaxConcurrentRequests: true,
				SendPingTimeout:             pingAfter,
				PingTimeout:                 pingTimeout,
				WriteByteTimeout:            pingTimeout,
			},
		},
	}
}

// get returns the wire to use now.
func (l *link) get() *wire {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

// drop retires w if it is still the current wire.
func (l *link) drop(w *wire) {
	l.mu.Lock()
	if l.current == w {
		l.current = l.dial()
		close(w.retired)
	}
	l.mu.Unlock()
	w.CloseIdleConnections()
}

// release is called when a request on w is over: the last one on a retired wire
// closes its connection.
func (l *link) release(w *wire) {
	select {
	case <-w.retired:
		w.CloseIdleConnections()
	default:
	}
}

func (l *link) close() { l.drop(l.get()) }
