package mcp

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// overLoopback reports whether the request came in over a loopback address. An
// unknown one counts as loopback, which is the stricter case.
func overLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return !ok || addr.IP.IsLoopback()
}

// foreign reports whether the request may come from a web page of another site: a
// name that was rebound to loopback stays in Host, and a page's site in Origin.
func foreign(r *http.Request) bool {
	if overLoopback(r) && !loopbackHost(r.Host) {
		return true
	}
	for _, origin := range r.Header["Origin"] {
		if !loopbackOrigin(origin) {
			return true
		}
	}
	return false
}

// loopbackHost accepts localhost and loopback addresses, with or without a port.
func loopbackHost(hostport string) bool {
	host := hostport
	if h, port, err := net.SplitHostPort(hostport); err == nil {
		if !digits(port) {
			return false
		}
		host = h
	} else if inner, ok := strings.CutPrefix(hostport, "["); ok {
		if host, ok = strings.CutSuffix(inner, "]"); !ok {
			return false
		}
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}

func loopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && loopbackHost(u.Host)
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// simpleContentType reports whether a web page may send the content type to another
// site without asking it first. A missing one is taken as JSON.
func simpleContentType(h http.Header) bool {
	for _, value := range h["Content-Type"] {
		if value == "application/json" {
			continue
		}
		essence := value
		if i := strings.IndexAny(essence, ";,"); i >= 0 {
			essence = essence[:i]
		}
		switch strings.ToLower(strings.TrimSpace(essence)) {
		case "text/plain", "application/x-www-form-urlencoded", "multipart/form-data":
			return true
		}
	}
	return false
}

// bearer is the token of the Authorization header. Two headers, or another scheme,
// are no token.
func bearer(h http.Header) (token string, present bool) {
	values := h["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return "", false
	}
	token = strings.TrimSpace(token)
	return token, token != ""
}

// acceptsEvents reports whether the client takes an event stream.
func acceptsEvents(h http.Header) bool {
	for _, value := range h["Accept"] {
		for item := range strings.SplitSeq(value, ",") {
			essence, params, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(essence), "text/event-stream") && !refusedByWeight(params) {
				return true
			}
		}
	}
	return false
}

// refusedByWeight finds a quality of zero (RFC 9110, 12.4.2).
func refusedByWeight(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, weight, _ := strings.Cut(param, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			weight = strings.TrimSpace(weight)
			return weight != "" && strings.Trim(weight, "0.") == ""
		}
	}
	return false
}
