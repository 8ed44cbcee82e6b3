package metrics

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Unknown is the tool namespace of a call for a tool that the turn does not have:
// the name is the caller's own.
const Unknown = "unknown"

// Other stands for every value past a label's limit.
const Other = "other"

// How many values the labels take whose values others choose.
const (
	maxCodes    = 128
	maxFamilies = 512
)

// Metrics holds the manager's own metrics. It implements [kernel.Observer], and
// [Metrics.Sink] makes the audit sink that feeds the rest. It is safe for
// concurrent use.
type Metrics struct {
	decisions, failClosed, calls, resources, messages, turns *prometheus.CounterVec
	callSeconds, loadSeconds, turnSeconds, auditSeconds      *prometheus.HistogramVec
	auditRecords                                             *prometheus.CounterVec
	auditFailures                                            prometheus.Counter
	clock                                                    func() time.Time
	codes, families                                          limited
}

// fast suits what the kernel does by itself, slow what waits for somebody else.
var (
	fast = []float64{.000_1, .000_25, .000_5, .001, .002_5, .005, .01, .025, .05, .1, .25, .5, 1, 5, 15, 60}
	slow = []float64{.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200, 3600}
)

// TokenCache is how the memory of reviewed tokens does: what it answered and what it did
// not since the process began, and how many reviews it holds.
type TokenCache struct {
	Hits, Misses uint64
	Held         int
}

// Live is what is asked whenever somebody scrapes. All are required.
type Live struct {
	// Sessions is the number of turns that run here.
	Sessions func() int
	// CertificateExpiry is until when the serving certificate is valid; zero while
	// there is none.
	CertificateExpiry func() time.Time
	// Tokens is the memory of the HTTP API's callers.
	Tokens func() TokenCache
}

// New registers the metrics. A name that is registered already is an error.
func New(registry prometheus.Registerer, clock func() time.Time, live Live) (*Metrics, error) {
	m := &Metrics{
		decisions:     counter("decisions_total", "Authorization decisions.", "world", "outcome", "reason"),
		failClosed:    counter("fail_closed_total", "Refusals because something could not be established, as opposed to policy.", "world", "reason"),
		calls:         counter("tool_calls_total", "Tool calls by how they ended.", "world", "tool_namespace", "status"),
		resources:     counter("resource_operations_total", "Direct resource operations by how they ended.", "world", "status"),
		messages:      counter("messages_total", "Messages by how their delivery ended.", "world", "status"),
		turns:         counter("turns_total", "Turns that ended.", "world", "outcome", "code"),
		auditRecords:  counter("audit_records_total", "Audit records kept.", "type"),
		callSeconds:   histogram("tool_call_duration_seconds", "Time from a call's arrival at the kernel to its answer.", fast, "tool_namespace", "status"),
		loadSeconds:   histogram("kernel_duration_seconds", "Time of the kernel's other work: load, catalog, resource, message.", fast, "operation", "status"),
		turnSeconds:   histogram("turn_duration_seconds", "Time from a turn's creation to its end.", slow, "outcome"),
		auditSeconds:  histogram("audit_write_duration_seconds", "Time until an audit record is kept.", fast, "mode"),
		auditFailures: prometheus.NewCounter(prometheus.CounterOpts{Name: "sharedos_audit_failures_total", Help: "Audit records that could not be kept. What they allow is refused."}),
		clock:         clock,
	}
	sessions := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sharedos_sessions", Help: "Turns that this manager runs now."},
		func() float64 { return float64(live.Sessions()) })
	expiry := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sharedos_certificate_expiry_timestamp_seconds", Help: "When the serving certificate ends, Unix time; 0 while there is none.",
	}, func() float64 {
		if at := live.CertificateExpiry(); !at.IsZero() {
			return float64(at.Unix())
		}
		return 0
	})
	lookups := func(result string, of func(TokenCache) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sharedos_token_cache_lookups_total", ConstLabels: prometheus.Labels{"result": result},
			Help: "Tokens of the HTTP API's callers: a hit had been reviewed a moment before, a miss had not.",
		}, func() float64 { return float64(of(live.Tokens())) })
	}
	held := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sharedos_token_cache_entries", Help: "Reviews of tokens that are remembered now.",
	}, func() float64 { return float64(live.Tokens().Held) })
	for _, c := range []prometheus.Collector{
		lookups("hit", func(t TokenCache) uint64 { return t.Hits }), lookups("miss", func(t TokenCache) uint64 { return t.Misses }), held,
		m.decisions, m.failClosed, m.calls, m.resources, m.messages, m.turns, m.auditRecords,
		m.callSeconds, m.loadSeconds, m.turnSeconds, m.auditSeconds, m.auditFailures, sessions, expiry,
	} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register a metric: %w", err)
		}
	}
	return m, nil
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sharedos_" + name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "sharedos_" + name, Help: help, Buckets: buckets}, labels)
}

// Start implements [kernel.Observer].
func (m *Metrics) Start(ctx context.Context, span kernel.Span) (context.Context, func(contract.Status, string)) {
	began := m.clock()
	return ctx, func(status contract.Status, code string) {
		took := m.clock().Sub(began).Seconds()
		if span.Name == "invoke" {
			m.callSeconds.WithLabelValues(m.family(span.Tool, code), string(status)).Observe(took)
			return
		}
		m.loadSeconds.WithLabelValues(span.Name, string(status)).Observe(took)
	}
}

// TurnEnded counts a turn that ended. code is empty for one that succeeded; it is
// the kernel's or the operator's, and past 128 different ones the
// label is [Other], because a provider may answer with codes of its own.
func (m *Metrics) TurnEnded(world string, outcome contract.Status, code string, took time.Duration) {
	m.turns.WithLabelValues(world, string(outcome), m.codes.label(code, maxCodes)).Inc()
	m.turnSeconds.WithLabelValues(string(outcome)).Observe(max(took, 0).Seconds())
}

// family is the tool namespace of a tool that the turn has, else [Unknown].
func (m *Metrics) family(tool, code string) string {
	switch code {
	case contract.CodeToolUnavailable, contract.CodeInvalidRequest, contract.CodeToolCatalogUnavailable:
		return Unknown
	}
	namespace, _, found := strings.Cut(tool, ".")
	if !found || namespace == "" {
		return Unknown
	}
	return m.families.label(namespace, maxFamilies)
}
