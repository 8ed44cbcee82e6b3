package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
)

// sieve is a stream of events of which only messages that the SDK may see are left.
type sieve struct {
	door   *door
	body   io.ReadCloser
	events events
	// posted is the message of ours that the stream answers; nil for another stream.
	posted *posted
	out    bytes.Buffer
	done   bool // posted was answered; what follows is nobody's
	first  bool // of the legacy transport, the event that names the endpoint
}

func newSieve(d *door, body io.ReadCloser, p *posted) *sieve {
	return &sieve{
		door: d, body: body, posted: p, first: d.legacy,
		events: events{r: bufio.NewReaderSize(body, 16<<10), limit: int(d.limit) + eventOverhead},
	}
}

// Read implements [io.Reader].
func (s *sieve) Read(p []byte) (int, error) {
	for s.out.Len() == 0 {
		if s.done {
			// The SDK has its answer; the connection is free once the stream ends.
			_, err := io.Copy(io.Discard, s.body)
			if err == nil {
				err = io.EOF
			}
			return 0, err
		}
		ev, err := s.events.next()
		switch {
		case errors.Is(err, errTooLarge):
			s.tooLarge()
		case err != nil:
			return 0, err
		default:
			s.take(&ev)
		}
	}
	return s.out.Read(p)
}

// Close implements [io.Closer].
func (s *sieve) Close() error {
	if s.posted != nil {
		s.posted.detach()
		s.posted.end()
	}
	return s.body.Close()
}

func (s *sieve) take(ev *event) {
	if s.first && ev.name == "endpoint" {
		s.first = false
		ev.write(&s.out)
		return
	}
	if ev.name != "" && ev.name != "message" {
		return
	}
	mark := event{id: ev.id, retry: ev.retry}
	if !ev.hasData || len(ev.data) == 0 {
		if mark.id != "" || mark.retry != "" {
			mark.write(&s.out)
		}
		return
	}
	messages, answered, err := s.door.questions.sift(ev.data)
	if errors.Is(err, errTooLarge) {
		s.tooLarge()
		return
	}
	for _, message := range messages {
		mark.data, mark.hasData = message, true
		mark.write(&s.out)
	}
	if s.posted != nil && err != nil {
		s.posted.x.set(func(o *outcome) { o.malformed = true }) // unless a better one follows
	}
	if s.posted != nil && slices.Contains(answered, s.posted.id) {
		s.done = true
		s.posted.answered()
	}
}

// tooLarge ends the request that the stream answers. On another stream the message
// is left out.
func (s *sieve) tooLarge() {
	if s.posted == nil {
		return
	}
	s.posted.x.set(func(o *outcome) { o.tooLarge = true })
	s.door.questions.take(s.posted.id)
	ev := event{data: errorMessage([]byte(s.posted.id), -32603), hasData: true}
	ev.write(&s.out)
	s.done = true
	s.posted.end()
}
