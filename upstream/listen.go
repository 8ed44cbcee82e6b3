package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// Waiting between two attempts to open the server's own stream.
const (
	listenAgainAfter = time.Second
	listenAgainMost  = time.Minute
	// listenLasted is how long a stream lasts that was worth opening.
	listenLasted = 30 * time.Second
)

// listen opens the stream on which a server speaks unasked. The SDK gets it at once
// and for as long as the session lasts: that a server offers none, does not answer, or
// ends it now and then, is not the session's end and delays nothing.
func (d *door) listen(request *http.Request) *http.Response {
	reader, writer := io.Pipe()
	ctx := request.Context()
	d.running.Go(func() {
		d.relay(ctx, request, writer)
		_ = writer.CloseWithError(io.EOF)
	})
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: reader, ContentLength: -1, Request: request,
	}
}

// relay copies the server's stream until ctx ends, and opens it anew when it broke off.
func (d *door) relay(ctx context.Context, request *http.Request, to io.Writer) {
	wait := listenAgainAfter
	for ctx.Err() == nil {
		response, err := d.send(request, nil, &exchange{})
		switch {
		case err != nil:
			if errors.Is(err, errOrigin) || errors.Is(err, errRedirection) {
				<-ctx.Done()
				return
			}
		case response.StatusCode != http.StatusOK || mediaType(response) != "text/event-stream":
			// It offers none, or forgot the session; the next request will tell.
			status := response.StatusCode
			discard(response)
			if status < 500 {
				<-ctx.Done()
				return
			}
		default:
			began := time.Now()
			d.copyEvents(response.Body, to)
			if time.Since(began) >= listenLasted {
				wait = listenAgainAfter
			}
		}
		if ctx.Err() == nil {
			d.lost()
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		wait = min(2*wait, listenAgainMost)
	}
}

// copyEvents copies what the SDK may see. Marks to resume at are left out: what was
// missed is asked for.
func (d *door) copyEvents(body io.ReadCloser, to io.Writer) {
	defer func() { _ = body.Close() }()
	s := newSieve(d, body, nil)
	for {
		ev, err := s.events.next()
		if errors.Is(err, errTooLarge) {
			continue
		}
		if err != nil {
			return
		}
		ev.id, ev.retry = "", ""
		s.take(&ev)
		var chunk bytes.Buffer
		if _, err := s.out.WriteTo(&chunk); err != nil {
			return
		}
		if chunk.Len() == 0 {
			continue
		}
		if _, err := to.Write(chunk.Bytes()); err != nil {
			return
		}
	}
}
