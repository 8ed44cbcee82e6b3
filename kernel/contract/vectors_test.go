package contract_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// vectors reads a file of golden values.
func vectors(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func TestPathSegmentVectors(t *testing.T) {
	t.Parallel()
	var v struct{ Valid, Invalid []string }
	vectors(t, "path-segments.json", &v)
	if len(v.Valid) < 5 || len(v.Invalid) < 5 {
		t.Fatalf("only %d valid and %d invalid segments", len(v.Valid), len(v.Invalid))
	}
	for _, s := range v.Valid {
		if err := contract.ValidateSegment(s); err != nil {
			t.Errorf("%.40q is refused: %v", s, err)
		}
	}
	for _, s := range v.Invalid {
		if contract.ValidateSegment(s) == nil {
			t.Errorf("%.40q is accepted", s)
		}
	}
}

func TestCatalogHashVectors(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Name        string
		Definitions []json.RawMessage
		Published   []json.RawMessage
		CatalogHash string
	}
	vectors(t, "catalog-hash.json", &cases)
	if len(cases) < 4 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, tt := range cases {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			var defs []contract.ToolDefinition
			for _, raw := range tt.Definitions {
				d, err := contract.Unmarshal[contract.ToolDefinition](raw)
				if err != nil {
					t.Fatal(err)
				}
				defs = append(defs, d)
			}
			published := contract.PublishTools(defs)
			for i := range published {
				got, err := canonical.Marshal(published[i])
				if err != nil {
					t.Fatal(err)
				}
				want, err := canonical.Transform(tt.Published[i])
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Errorf("published tool %d: -want +got\n%s", i, diff)
				}
			}
			hash, err := contract.CatalogHash(published)
			if err != nil || hash != tt.CatalogHash {
				t.Errorf("hash = %s, %v; want %s", hash, err, tt.CatalogHash)
			}
			c := contract.Catalogue{Version: "1", ExecutionID: "e", CatalogHash: hash, Tools: published}
			if err := c.Validate(); err != nil {
				t.Errorf("the catalogue is refused: %v", err)
			}
			c.CatalogHash = canonical.HashBytes(nil)
			if c.Validate() == nil {
				t.Error("a catalogue with another hash is accepted")
			}
		})
	}
}

func TestCatalogHashDependsOnItsFieldsOnly(t *testing.T) {
	t.Parallel()
	want := []string{"annotations", "description", "inputSchema", "metadata", "name", "outputSchema"}
	if diff := cmp.Diff(want, contract.CatalogHashFields()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	raw, err := json.Marshal(contract.PublishTool(contract.ToolDefinition{
		Name: "a.b", InputSchema: contract.Object(`{}`), OutputSchema: contract.Object(`{}`), ReadWrite: contract.ClassRead,
		Metadata: contract.Object(`{"secret":true}`),
	}))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	if len(fields) != len(want) {
		t.Errorf("a published tool has fields beyond those hashed: %s", raw)
	}
	for _, name := range want {
		if _, ok := fields[name]; !ok {
			t.Errorf("field %s is not published: %s", name, raw)
		}
	}
}
