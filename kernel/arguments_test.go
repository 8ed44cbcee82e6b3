package kernel_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	args, err := kernel.ParseArguments(contract.Object(` {"path":["a","b"],"n":12345678901234567890,"s":"x","bad":["a",1],"Path":1} `))
	if err != nil {
		t.Fatal(err)
	}
	if path, err := args.Path("path"); err != nil || !cmp.Equal(path, contract.Path{"a", "b"}) {
		t.Errorf("path = %v, %v", path, err)
	}
	for _, name := range []string{"absent", "s", "bad"} {
		if path, err := args.Path(name); err == nil {
			t.Errorf("%s is the path %v", name, path)
		}
	}
	if s, ok := args.String("s"); !ok || s != "x" {
		t.Errorf("s = %q, %t", s, ok)
	}
	for _, name := range []string{"n", "absent"} {
		if s, ok := args.String(name); ok {
			t.Errorf("%s is the string %q", name, s)
		}
	}
	if !args.Has("n") || args.Has("N") || string(args.Member("n")) != "12345678901234567890" || args.Member("absent") != nil {
		t.Errorf("n = %s", args.Member("n"))
	}
	if got := args.Value()["n"]; got != json.Number("12345678901234567890") {
		t.Errorf("n = %v", got)
	}
	var into struct {
		N json.Number `json:"n"`
	}
	if err := args.Decode(&into); err != nil || into.N != "12345678901234567890" {
		t.Errorf("decoded %+v, %v", into, err)
	}
	var wrong struct {
		S int `json:"s"`
	}
	if err := args.Decode(&wrong); err == nil {
		t.Errorf("decoded %+v", wrong)
	}
	if got := string(args.Without("path", "bad")); got != `{"n":12345678901234567890,"s":"x","Path":1}` {
		t.Errorf("without path: %s", got)
	}
	var zero kernel.Arguments
	if len(zero.Value()) != 0 || zero.Has("x") || string(zero.Without("x")) != `{}` {
		t.Error("zero arguments hold something")
	}
	for _, in := range []string{``, `null`, `[]`, `"x"`, `{"a":1,"a":1}`, `{} x`} {
		if _, err := kernel.ParseArguments(contract.Object(in)); err == nil {
			t.Errorf("%s was parsed", in)
		}
	}
}

func FuzzArguments(f *testing.F) {
	f.Add([]byte(`{"path":["a"],"n":1.50,"grant":{"id":"g"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		args, err := kernel.ParseArguments(data)
		if err != nil {
			return
		}
		whole, err := canonical.Transform(args.Without())
		if err != nil {
			t.Fatalf("%q became %q: %v", data, args.Without(), err)
		}
		want, err := canonical.Transform(data)
		if err != nil || string(want) != string(whole) {
			t.Fatalf("%q became %q", data, whole)
		}
		path, err := args.Path("path")
		if err == nil && path.Validate() == nil {
			again, err := json.Marshal(path)
			if err != nil || len(again) == 0 {
				t.Fatalf("path %v: %v", path, err)
			}
		}
		args.Value()
	})
}

// FuzzGrantHash checks the hand-written canonical form of a grant against the general one.
func FuzzGrantHash(f *testing.F) {
	for _, g := range []contract.Grant{readGrant("a").Obj(), root().Owned(kerneltest.Alice()).Metadata(`{"b":1.50,"a":"é😀"}`).Revoked(1).MaxUses(2).Parent("p").Obj()} {
		raw, err := json.Marshal(g)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := contract.Unmarshal[contract.Grant](data)
		if err != nil {
			return
		}
		got, err := kernel.AppendGrant(&g)
		if err != nil {
			t.Fatal(err)
		}
		want, err := canonical.Marshal(g)
		if err != nil || string(got) != string(want) {
			t.Fatalf("%s\nwant %s, %v", got, want, err)
		}
	})
}
