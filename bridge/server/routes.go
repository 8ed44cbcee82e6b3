package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/sessions"
)

func (s *Server) catalog(w http.ResponseWriter, _ *http.Request, session *sessions.Session) {
	writeJSON(w, http.StatusOK, session.Catalog())
}

func (s *Server) invoke(w http.ResponseWriter, r *http.Request, session *sessions.Session) {
	var in bridge.InvokeRequest
	if err := readJSON(w, r, MaxInvokeBytes, &in); err != nil {
		s.refuse(w, r, err)
		return
	}
	if in.CallID == "" || len(in.CallID) > 256 {
		s.refuse(w, r, &bridge.Error{Code: bridge.CodeInvalidRequest, Message: "callId: must have 1 to 256 characters"})
		return
	}
	if len(in.Arguments) == 0 {
		in.Arguments = json.RawMessage("{}")
	}
	count(r, session)
	writeJSON(w, http.StatusOK, session.Invoke(r.Context(), in))
}

// count tells the session how many calls the bridge sent.
func count(r *http.Request, session *sessions.Session) {
	if before, err := strconv.ParseInt(r.Header.Get(bridge.HeaderCallsBefore), 10, 64); err == nil {
		session.CallsBefore(before)
	}
}

func (s *Server) outcome(w http.ResponseWriter, r *http.Request, session *sessions.Session) {
	var in bridge.Outcome
	if err := readJSON(w, r, MaxOutcomeBytes, &in); err != nil {
		s.refuse(w, r, err)
		return
	}
	count(r, session)
	if err := session.Outcome(r.Context(), in); err != nil {
		s.refuse(w, r, &bridge.Error{Code: bridge.CodeKernelUnavailable, Message: "the outcome is not stored yet", Retryable: true})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// session streams the turn's life: attached, heartbeats, and the ending.
func (s *Server) session(w http.ResponseWriter, r *http.Request, session *sessions.Session) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	stream := &stream{w: w, control: http.NewResponseController(w)}
	if !stream.send(bridge.SessionEvent{Type: bridge.SessionAttached}) {
		return
	}
	// The turn outlives this stream: it must not be cancelled with it.
	session.Ready(context.WithoutCancel(r.Context()))
	beat := time.NewTicker(bridge.HeartbeatSeconds * time.Second)
	defer beat.Stop()
	for {
		select {
		case <-session.Done():
			stream.send(bridge.SessionEvent{Type: bridge.SessionEnded, Status: session.Status()})
			return
		case <-beat.C:
			if !stream.send(bridge.SessionEvent{Type: bridge.SessionHeartbeat}) {
				return
			}
		case <-s.opts.Stopping:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// stream writes one JSON object a line and flushes it.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s *stream) send(e bridge.SessionEvent) bool {
	line, err := json.Marshal(e)
	if err != nil {
		return false
	}
	// A peer that takes nothing must not hold the handler for ever.
	_ = s.control.SetWriteDeadline(time.Now().Add(2 * bridge.HeartbeatSeconds * time.Second))
	if _, err := s.w.Write(append(line, '\n')); err != nil {
		return false
	}
	return s.control.Flush() == nil
}
