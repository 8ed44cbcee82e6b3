package upstream

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// posted is the response to a message of ours.
type posted struct {
	door     *door
	response *http.Response
	id       string // of the request in it; empty for a notification
	x        *exchange
	detach   func() bool // the caller's end is not the request's any more
	end      func()
}

// take turns the response into one that cannot break the session: whatever the server
// answered to a request, the SDK is told something well-formed about that request.
func (p *posted) take() (*http.Response, error) {
	status := p.response.StatusCode
	ok := status >= 200 && status < 300
	switch {
	case p.door.legacy:
		// The answer comes on the stream, or not at all.
		if !ok {
			p.door.questions.take(p.id)
		}
		return p.finish(status, "", nil), nil
	case p.id == "":
		return p.finish(http.StatusAccepted, "", nil), nil
	case ok && mediaType(p.response) == "text/event-stream":
		p.response.Body = newSieve(p.door, p.response.Body, p)
		return p.response, nil
	case ok && mediaType(p.response) == "application/json":
		return p.whole()
	case ok:
		p.x.set(func(o *outcome) { o.malformed = true })
	}
	return p.unanswered(), nil
}

// whole takes an answer that is one document.
func (p *posted) whole() (*http.Response, error) {
	data, err := readAll(p.response.Body, p.door.limit)
	switch {
	case errors.Is(err, errTooLarge):
		p.x.set(func(o *outcome) { o.tooLarge = true })
		return p.unanswered(), nil
	case err != nil:
		p.door.questions.take(p.id)
		_ = p.finish(0, "", nil)
		return nil, errors.Join(ErrUnreachable, err)
	}
	messages, answered, err := p.door.questions.sift(data)
	if errors.Is(err, errTooLarge) {
		p.x.set(func(o *outcome) { o.tooLarge = true })
		return p.unanswered(), nil
	}
	for i := range answered {
		if answered[i] == p.id {
			return p.finish(http.StatusOK, "application/json", messages[len(messages)-len(answered)+i]), nil
		}
	}
	p.x.set(func(o *outcome) { o.malformed = true })
	return p.unanswered(), nil
}

// unanswered tells the SDK that its request failed.
func (p *posted) unanswered() *http.Response {
	p.door.questions.take(p.id)
	return p.finish(http.StatusOK, "application/json", errorMessage([]byte(p.id), -32603))
}

// finish ends the request and returns another response in its place.
func (p *posted) finish(status int, contentType string, body []byte) *http.Response {
	out := replace(p.response, status, contentType, body)
	p.detach()
	p.end()
	return out
}

// answered lets the rest of the stream come for a while, although the caller has gone.
func (p *posted) answered() {
	if p.detach() {
		time.AfterFunc(linger, p.end)
	}
}

// readAll reads at most limit bytes.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, errTooLarge
	}
	return data, nil
}
