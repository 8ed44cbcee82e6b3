// Package metrics counts what the manager decides and does, for Prometheus.
//
// Every number comes from a fact that is recorded anyway: decisions and calls from
// the audit records, durations from the kernel's observer, turns from their ending.
// Label values are closed sets, or names that somebody declared as YAML; text that
// a caller chose is never one. docs/metrics.md lists the names.
package metrics
