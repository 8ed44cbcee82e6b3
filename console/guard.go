package console

import (
	"net"
	"net/http"
	"strings"
)

// policy lets a page load our own style sheet and icon and nothing else, and lets
// nobody frame it. Without script-src no script runs, whatever is injected.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// guard refuses what a browser would be made to ask by another site, and tells the
// browser to keep pages to itself. It stands before every answer, also a refusal.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "The console only shows: use GET or HEAD.", http.StatusMethodNotAllowed)
		case !loopbackHost(r.Host):
			// A name that somebody else made point here is not ours (DNS rebinding).
			http.Error(w, "Open the console as http://localhost or http://127.0.0.1.", http.StatusForbidden)
		case !ownSite(r.Header):
			http.Error(w, "The console answers no other site: type its address into the browser.", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// loopbackHost reports whether a Host header names this machine: localhost, or a
// loopback address, with any port, because a port-forward chooses its own.
func loopbackHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		name = host[1 : len(host)-1]
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// ownSite reports whether the browser says that a person or our own page asks.
// Another port of localhost is "same-site" and somebody else.
func ownSite(h http.Header) bool {
	for _, site := range h.Values("Sec-Fetch-Site") {
		if site != "none" && site != "same-origin" {
			return false
		}
	}
	return true
}

// asset serves bytes whose path changes with them.
func asset(contentType string, content []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "private, max-age=86400, immutable")
		_, _ = w.Write(content)
	})
}
