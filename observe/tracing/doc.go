// Package tracing tells what the kernel does as OpenTelemetry spans: one trace for
// each Turn, from its creation through every call to the resource provider.
//
// The trace's id follows from the Turn's trace id, so that a manager that takes a
// turn over continues the same trace. Spans carry names and codes, never
// arguments, outputs, grants or tokens. The exporter and sampling are configured by
// the standard OTEL_* variables.
package tracing
