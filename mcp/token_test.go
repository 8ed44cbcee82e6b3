package mcp_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/mcp"
)

type tokenVector struct {
	Secret string              `json:"secret"`
	Claims mcp.ExecutionClaims `json:"claims"`
	Token  string              `json:"token"`
	Cases  []struct {
		Name   string            `json:"name"`
		Token  string            `json:"token"`
		Now    time.Time         `json:"now"`
		Expect map[string]string `json:"expect"`
		Result string            `json:"result"`
	} `json:"cases"`
}

// vector reads a file of testdata.
func vector[T any](tb testing.TB, name string) T {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		tb.Fatalf("decode %s: %v", name, err)
	}
	return v
}

// reasonOf is the refusal's reason, or "valid".
func reasonOf(tb testing.TB, err error) string {
	tb.Helper()
	if err == nil {
		return "valid"
	}
	var refused *mcp.TokenError
	if !errors.As(err, &refused) {
		tb.Fatalf("error %v is no TokenError", err)
	}
	return string(refused.Reason)
}

func TestExecutionTokenVectors(t *testing.T) {
	t.Parallel()
	v := vector[tokenVector](t, "execution-token.json")
	minted, err := mcp.MintExecutionToken(v.Claims, []byte(v.Secret))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v.Token, minted); diff != "" {
		t.Errorf("minted token (-want +got):\n%s", diff)
	}
	if len(v.Cases) < 15 {
		t.Fatalf("only %d cases", len(v.Cases))
	}
	for _, c := range v.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			expect := mcp.ExpectedClaims{
				ExecutionID: c.Expect["executionId"], NamespaceID: c.Expect["namespaceId"],
				Actor: c.Expect["actor"], CatalogHash: c.Expect["catalogHash"],
			}
			claims, err := mcp.VerifyExecutionToken(c.Token, mcp.Keys{Current: []byte(v.Secret)}, mcp.VerifyOptions{Now: c.Now, Expect: expect})
			if got := reasonOf(t, err); got != c.Result {
				t.Fatalf("verdict %q, want %q", got, c.Result)
			}
			want := mcp.ExecutionClaims{}
			if c.Result == "valid" {
				want = v.Claims
			}
			if diff := cmp.Diff(want, claims); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExecutionTokenKeys(t *testing.T) {
	t.Parallel()
	v := vector[tokenVector](t, "execution-token.json")
	old, next, short := []byte(v.Secret), []byte(strings.Repeat("n", 32)), []byte(strings.Repeat("s", 31))
	now := v.Claims.ExpiresAt.Add(-time.Second)
	tests := map[string]struct {
		keys mcp.Keys
		want string
	}{
		"current":              {mcp.Keys{Current: old}, "valid"},
		"previous":             {mcp.Keys{Current: next, Previous: old}, "valid"},
		"rotated out":          {mcp.Keys{Current: next, Previous: next}, "signature_mismatch"},
		"no key":               {mcp.Keys{}, "signature_mismatch"},
		"short keys are inert": {mcp.Keys{Current: short, Previous: short}, "signature_mismatch"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := mcp.VerifyExecutionToken(v.Token, tt.keys, mcp.VerifyOptions{Now: now})
			if got := reasonOf(t, err); got != tt.want {
				t.Errorf("verdict %q, want %q", got, tt.want)
			}
		})
	}
	if _, err := mcp.MintExecutionToken(v.Claims, short); !errors.Is(err, mcp.ErrShortSecret) {
		t.Errorf("minting with 31 bytes: %v", err)
	}
}

func TestExecutionTokenClaims(t *testing.T) {
	t.Parallel()
	v := vector[tokenVector](t, "execution-token.json")
	secret := []byte(v.Secret)
	later := contract.At(v.Claims.ExpiresAt.Add(time.Second))
	tests := map[string]struct {
		edit   func(*mcp.ExecutionClaims)
		broken bool
	}{
		"limits": {func(c *mcp.ExecutionClaims) {
			c.ExecutionID = strings.Repeat("é", 256)
			c.Actor = strings.Repeat("é", 512)
		}, false},
		"finer expiry":       {func(c *mcp.ExecutionClaims) { c.ExpiresAt = contract.At(c.ExpiresAt.Add(time.Nanosecond)) }, false},
		"no execution":       {func(c *mcp.ExecutionClaims) { c.ExecutionID = "" }, true},
		"long execution":     {func(c *mcp.ExecutionClaims) { c.ExecutionID = strings.Repeat("e", 257) }, true},
		"untrimmed":          {func(c *mcp.ExecutionClaims) { c.NamespaceID = "team-atlas " }, true},
		"long actor":         {func(c *mcp.ExecutionClaims) { c.Actor = strings.Repeat("a", 513) }, true},
		"invalid UTF-8":      {func(c *mcp.ExecutionClaims) { c.Actor = "agent:\xff" }, true},
		"short hash":         {func(c *mcp.ExecutionClaims) { c.CatalogHash = c.CatalogHash[1:] }, true},
		"hash not hex":       {func(c *mcp.ExecutionClaims) { c.CatalogHash = "g" + c.CatalogHash[1:] }, true},
		"never expires":      {func(c *mcp.ExecutionClaims) { c.ExpiresAt = contract.Timestamp{} }, true},
		"quotes and slashes": {func(c *mcp.ExecutionClaims) { c.Actor = `agent:"<&>\` + "\u2028" }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claims := v.Claims
			tt.edit(&claims)
			token, err := mcp.MintExecutionToken(claims, secret)
			if (err != nil) != tt.broken {
				t.Fatalf("mint error %v, want broken %v", err, tt.broken)
			}
			if tt.broken {
				return
			}
			got, err := mcp.VerifyExecutionToken(token, mcp.Keys{Current: secret}, mcp.VerifyOptions{Now: claims.ExpiresAt.Add(-1)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(claims, got); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
	expects := map[string]mcp.ExpectedClaims{
		"execution": {ExecutionID: "x"}, "namespace": {NamespaceID: "x"}, "actor": {Actor: "x"},
		"catalogue": {CatalogHash: "x"}, "expiry": {ExpiresAt: later},
	}
	for name, expect := range expects {
		_, err := mcp.VerifyExecutionToken(v.Token, mcp.Keys{Current: secret}, mcp.VerifyOptions{Now: v.Claims.ExpiresAt.Add(-1), Expect: expect})
		if got := reasonOf(t, err); got != "claims_mismatch" {
			t.Errorf("other %s: verdict %q", name, got)
		}
	}
	_, err := mcp.VerifyExecutionToken(v.Token, mcp.Keys{Current: secret}, mcp.VerifyOptions{})
	if got := reasonOf(t, err); got != "expired" {
		t.Errorf("without an instant: verdict %q", got)
	}
}

// TestExecutionTokenErrorIsSilent: neither claims nor token reach a log.
func TestExecutionTokenErrorIsSilent(t *testing.T) {
	t.Parallel()
	v := vector[tokenVector](t, "execution-token.json")
	_, err := mcp.VerifyExecutionToken(v.Token, mcp.Keys{Current: []byte(v.Secret)}, mcp.VerifyOptions{Now: v.Claims.ExpiresAt.Time})
	if err == nil || strings.Contains(err.Error(), "execution-1") || strings.Contains(err.Error(), v.Token[:8]) {
		t.Errorf("error %v", err)
	}
}

func FuzzVerifyExecutionToken(f *testing.F) {
	v := vector[tokenVector](f, "execution-token.json")
	for _, c := range v.Cases {
		f.Add(c.Token)
	}
	f.Add(".")
	f.Add(strings.Repeat("a", mcp.MaxTokenLength+1))
	secret := []byte(v.Secret)
	payload, _, _ := strings.Cut(v.Token, ".")
	f.Fuzz(func(t *testing.T, token string) {
		claims, err := mcp.VerifyExecutionToken(token, mcp.Keys{Current: secret}, mcp.VerifyOptions{Now: v.Claims.ExpiresAt.Add(-1)})
		if err != nil {
			reasonOf(t, err)
			if claims != (mcp.ExecutionClaims{}) {
				t.Fatalf("claims %v beside an error", claims)
			}
			return
		}
		if token != v.Token {
			t.Fatalf("accepted a token that was never minted: payload %q, minted %q", token, payload)
		}
	})
}

// FuzzExecutionClaims signs arbitrary payloads: what is accepted is mintable.
func FuzzExecutionClaims(f *testing.F) {
	v := vector[tokenVector](f, "execution-token.json")
	payload, _, _ := strings.Cut(v.Token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"actor":"a","actor":"b"}`))
	f.Add([]byte(`{"Actor":"a"}`))
	f.Add([]byte(`[]`))
	secret := []byte(v.Secret)
	f.Fuzz(func(t *testing.T, raw []byte) {
		token := mcp.SignForTest(raw, secret)
		claims, err := mcp.VerifyExecutionToken(token, mcp.Keys{Current: secret}, mcp.VerifyOptions{Now: time.Unix(1, 0)})
		if err != nil {
			if reasonOf(t, err) == "signature_mismatch" {
				t.Fatal("a good signature was refused")
			}
			return
		}
		if _, err := mcp.MintExecutionToken(claims, secret); err != nil {
			t.Fatalf("accepted claims that cannot be minted: %v", err)
		}
	})
}

func BenchmarkVerifyExecutionToken(b *testing.B) {
	v := vector[tokenVector](b, "execution-token.json")
	opts := mcp.VerifyOptions{
		Now:    v.Claims.ExpiresAt.Add(-1),
		Expect: mcp.ExpectedClaims{ExecutionID: v.Claims.ExecutionID, CatalogHash: v.Claims.CatalogHash},
	}
	secret := []byte(v.Secret)
	for name, keys := range map[string]mcp.Keys{
		"current":  {Current: secret},
		"previous": {Current: []byte(strings.Repeat("n", 32)), Previous: secret},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := mcp.VerifyExecutionToken(v.Token, keys, opts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
