// Package consoletest is a small invented world for tests of the console, and a
// reader over it that answers for the five kinds and nothing else.
package consoletest
