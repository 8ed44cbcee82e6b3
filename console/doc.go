// Package console is the read-only web console that the manager serves on a loopback
// address of its pod, where only a port-forward reaches it.
//
// It shows Turns and their timelines, who can reach what, refusals over time and
// escalations that wait. It reads the five kinds through a [client.Reader] and
// nothing else: no Secret, no ConfigMap, no pod. What somebody can reach is asked of
// a kernel of its own, which has no tools, spends no use and records nothing,
// because nothing is decided for anybody.
//
// Pages are made on the server without a script, and load nothing but their own
// style sheet and icon. Text of objects is escaped, and what a terminal or a reader
// could be misled by (control and direction characters) is written as an escape.
package console
