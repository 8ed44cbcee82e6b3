package metrics

import (
	"context"

	"github.com/sharedos-dev/operator/kernel/audit"
)

// Sink counts every record that next keeps, and those that it could not.
func (m *Metrics) Sink(next audit.Sink) audit.Deferrer { return &sink{m: m, next: next} }

type sink struct {
	m    *Metrics
	next audit.Sink
}

// Record implements [audit.Sink].
func (s *sink) Record(ctx context.Context, e audit.Event) error {
	return s.keep(ctx, &e, "durable", s.next.Record)
}

// Defer implements [audit.Deferrer]: a sink that cannot defer records at once.
func (s *sink) Defer(ctx context.Context, e audit.Event) error {
	if d, ok := s.next.(audit.Deferrer); ok {
		return s.keep(ctx, &e, "deferred", d.Defer)
	}
	return s.Record(ctx, e)
}

func (s *sink) keep(ctx context.Context, e *audit.Event, mode string, keep func(context.Context, audit.Event) error) error {
	began := s.m.clock()
	err := keep(ctx, *e)
	s.m.auditSeconds.WithLabelValues(mode).Observe(s.m.clock().Sub(began).Seconds())
	if err != nil {
		s.m.auditFailures.Inc()
		return err
	}
	s.m.auditRecords.WithLabelValues(string(e.Type)).Inc()
	s.m.count(e)
	return nil
}

// count takes from a record what the counters say. Turns are counted where they
// are stored, because not every one of them came as far as a record.
func (m *Metrics) count(e *audit.Event) {
	if e.FailClosed {
		m.failClosed.WithLabelValues(e.NamespaceID, m.codes.label(e.Reason, maxCodes)).Inc()
	}
	switch e.Type {
	case audit.AuthorizationChecked:
		m.decisions.WithLabelValues(e.NamespaceID, string(e.Outcome), m.codes.label(e.Reason, maxCodes)).Inc()
	case audit.ToolInvoked:
		m.calls.WithLabelValues(e.NamespaceID, m.family(e.Tool, e.Reason), string(e.Outcome)).Inc()
	case audit.ResourceInvoked:
		m.resources.WithLabelValues(e.NamespaceID, string(e.Outcome)).Inc()
	case audit.MessageSent:
		m.messages.WithLabelValues(e.NamespaceID, string(e.Outcome)).Inc()
	case audit.AuthorityResolved, audit.EscalationRequested, audit.ToolCatalogListed,
		audit.NamespacesListed, audit.NamespacesUpdated, audit.TurnEnded:
	}
}
