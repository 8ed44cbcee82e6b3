package mcp

import "testing"

// FuzzPlainClaims: the short way of reading claims never differs from the long one.
func FuzzPlainClaims(f *testing.F) {
	const head = `{"actor":"a","catalogHash":"h","executionId":"e","expiresAt":"2026-12-01T00:00:00Z","namespaceId":"n"}`
	f.Add(head)
	f.Add(head[:len(head)-1] + `,"actor":"b"}`)
	f.Add(`{"actor":"\u0061","catalogHash":"h","executionId":"e","expiresAt":"2026-12-01T00:00:00Z","namespaceId":"n"}`)
	f.Fuzz(func(t *testing.T, s string) {
		short, ok := plainClaims(s)
		if !ok || short.broken() != "" {
			return
		}
		if long, ok := anyClaims([]byte(s)); !ok || long != short {
			t.Fatalf("%q: short %v, long %v (%v)", s, short, long, ok)
		}
	})
}

func TestPlainClaimsTakesWhatIsMinted(t *testing.T) {
	t.Parallel()
	const minted = `{"actor":"a","catalogHash":"h","executionId":"e","expiresAt":"2026-12-01T00:00:00Z","namespaceId":"n"}`
	if claims, ok := plainClaims(minted); !ok || claims.NamespaceID != "n" || claims.Actor != "a" {
		t.Fatalf("claims %v, ok %v", claims, ok)
	}
}
