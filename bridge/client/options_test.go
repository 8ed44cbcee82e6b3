package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"
)

// selfSigned is the PEM of an authority that has signed nothing.
func selfSigned(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestNewRefuses(t *testing.T) {
	ca := selfSigned(t)
	good := Options{BaseURL: "https://kernel.sharedos-system.svc:8444/", RootCAs: ca, TokenFile: "/token"}
	if _, err := New(good); err != nil {
		t.Fatalf("good options: %v", err)
	}
	for name, change := range map[string]func(*Options){
		"plain HTTP":    func(o *Options) { o.BaseURL = "http://kernel" },
		"no host":       func(o *Options) { o.BaseURL = "https://" },
		"a path":        func(o *Options) { o.BaseURL = "https://kernel/api" },
		"a query":       func(o *Options) { o.BaseURL = "https://kernel?x=1" },
		"user info":     func(o *Options) { o.BaseURL = "https://u:p@kernel" },
		"no token file": func(o *Options) { o.TokenFile = "" },
		"no roots":      func(o *Options) { o.RootCAs = nil },
		"bad roots":     func(o *Options) { o.RootCAs = []byte("hello") },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestReadToken(t *testing.T) {
	for name, tt := range map[string]struct{ content, want string }{
		"plain":     {"abc", "abc"},
		"newline":   {"abc\n", "abc"},
		"empty":     {"\n", ""},
		"two lines": {"abc\r\nX-Evil: 1", ""},
		"unicode":   {"ab\u00e9", ""},
		"too long":  {strings.Repeat("a", maxTokenBytes+1), ""},
	} {
		got, err := readToken(tokenFile(t, tt.content))
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if err != nil && strings.Contains(err.Error(), "abc") {
			t.Errorf("%s: the error repeats the file: %v", name, err)
		}
	}
	if _, err := readToken(tokenFile(t, "x") + "-absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}

func TestATokenIsReadAgainWhenItsFileIsAnotherOne(t *testing.T) {
	path := tokenFile(t, "first")
	source := &tokenSource{path: path}
	want := func(when, token string) {
		t.Helper()
		if got, err := source.read(); err != nil || got != token {
			t.Errorf("%s: %q %v, want %q", when, got, err, token)
		}
	}
	long := time.Now().Add(-time.Hour)
	age := func(file string, at time.Time) {
		t.Helper()
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	want("at first", "first")
	writeToken(t, path, "other")
	want("written twice in one instant", "other")
	age(path, long)
	want("settled", "other")
	// A file of the same name, time and size takes its place, as the kubelet does it.
	next := tokenFile(t, "third")
	age(next, long)
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	want("replaced", "third")
	writeToken(t, path, "fourth")
	age(path, long.Add(time.Second))
	want("written over", "fourth")
	writeToken(t, path, "fifth!")
	age(path, long.Add(time.Second))
	want("nothing to tell it by", "fourth")
	source.forget()
	want("not accepted", "fifth!")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := source.read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: %v", err)
	}
}
