package console

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/console/consoletest"
)

func TestHeaders(t *testing.T) {
	h := handler(t, consoletest.World())
	refused := func(r *http.Request) { r.Host = "evil.example" }
	check := func(name string, r answer) {
		t.Helper()
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Set-Cookie": "",
		} {
			if got := r.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
	}
	for _, path := range every {
		check(path, get(h, path))
	}
	check("refused", get(h, "/", refused))
}

func TestMethods(t *testing.T) {
	h := handler(t, consoletest.World())
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "get"} {
		for _, path := range every {
			r := get(h, path, func(r *http.Request) { r.Method = method })
			if r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s answers %d", method, path, r.StatusCode)
			}
		}
	}
	if r := get(h, "/turns", func(r *http.Request) { r.Method = http.MethodHead }); r.StatusCode != http.StatusOK {
		t.Errorf("HEAD answers %d", r.StatusCode)
	}
}

func TestHosts(t *testing.T) {
	h := handler(t, consoletest.World())
	for host, want := range map[string]int{
		"localhost": 200, "localhost:1": 200, "LOCALHOST:8090": 200, "127.0.0.1:8090": 200, "127.9.9.9": 200, "[::1]:8090": 200, "[::1]": 200,
		"": 403, "evil.example": 403, "localhost.evil.example": 403, "127.0.0.1.nip.example:8090": 403, "10.0.0.1:8090": 403, "0.0.0.0:8090": 403,
		"[::]:8090": 403, "localhost:8090:1": 403, "evil@localhost": 403, "localhost.": 403, "[fe80::1%25lo]:80": 403, "0x7f.1": 403, "127.1": 403,
	} {
		if got := get(h, "/", func(r *http.Request) { r.Host = host }).StatusCode; got != want {
			t.Errorf("host %q answers %d, want %d", host, got, want)
		}
	}
}

func TestOtherSites(t *testing.T) {
	h := handler(t, consoletest.World())
	for site, want := range map[string]int{"none": 200, "same-origin": 200, "cross-site": 403, "same-site": 403, "": 403, "None": 403} {
		if got := get(h, "/", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", site) }).StatusCode; got != want {
			t.Errorf("Sec-Fetch-Site %q answers %d, want %d", site, got, want)
		}
	}
	twice := func(r *http.Request) { r.Header["Sec-Fetch-Site"] = []string{"none", "cross-site"} }
	if got := get(h, "/", twice).StatusCode; got != http.StatusForbidden {
		t.Errorf("two of them answer %d", got)
	}
}

func TestAssets(t *testing.T) {
	h := handler(t, consoletest.World())
	page := get(h, "/").body
	_, rest, _ := strings.Cut(page, `rel="stylesheet" href="`)
	path, _, _ := strings.Cut(rest, `"`)
	r := get(h, path)
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/css; charset=utf-8" || r.body != string(style) {
		t.Errorf("the style sheet at %q answers %d", path, r.StatusCode)
	}
	if strings.Contains(string(style), "url(") || strings.Contains(string(style), "@import") {
		t.Error("the style sheet loads something")
	}
	if r := get(h, iconPath); r.StatusCode != 200 || r.Header.Get("Content-Type") != "image/svg+xml" {
		t.Errorf("the icon answers %d", r.StatusCode)
	}
}

func TestCheckListen(t *testing.T) {
	for address, want := range map[string]string{
		"0": "", "127.0.0.1:8090": "", "[::1]:8090": "", "127.0.0.53:1": "",
		"0.0.0.0:8090": "not a loopback", ":8090": "not a loopback", "[::]:8090": "not a loopback", "10.1.2.3:8090": "not a loopback",
		"localhost:8090": "not a loopback", "127.0.0.1": "ADDRESS:PORT", "": "ADDRESS:PORT", "127.0.0.1:0": "no port", "127.0.0.1:http": "no port",
		"127.0.0.1:65536": "no port",
	} {
		err := CheckListen(address)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
}

func TestServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Handler: handler(t, consoletest.World())}
	if s.NeedLeaderElection() {
		t.Error("a replica that is not the leader would show nothing")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, listener) }()
	r, err := http.Get("http://" + listener.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 || !strings.Contains(string(page), "<h1>Overview</h1>") {
		t.Errorf("it answers %d, %v", r.StatusCode, err)
	}
	_ = r.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if err := (&Server{Listen: "0.0.0.0:0"}).Start(t.Context()); err == nil {
		t.Error("it listens where everybody hears it")
	}
	if err := (&Server{Listen: Off}).Start(t.Context()); err != nil {
		t.Errorf("switched off it ends with %v", err)
	}
}
