// Package oneview reads the API server itself, each list once for one piece of work:
// whoever admits a Turn asks for the same lists several times, by several ports, and
// must be told the same each time.
package oneview
