package keyring_test

import (
	"bytes"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/sharedos-dev/operator/keyring"
	"github.com/sharedos-dev/operator/mcp"
)

func TestKeysAreMadeKeptAndRotated(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	name := types.NamespacedName{Namespace: "sys", Name: "keys"}
	c := fake.NewClientBuilder().WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "sys", Name: "keys"}}).Build()
	ring := func() *keyring.Keyring {
		return &keyring.Keyring{Reader: c, Writer: c, Secret: name, Clock: func() time.Time { return now }}
	}
	first := ring()
	if keys := first.Keys(); keys.Current != nil {
		t.Fatal("keys before there are any")
	}
	ensure := func(k *keyring.Keyring) mcp.Keys {
		t.Helper()
		if err := k.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		return k.Keys()
	}
	made := ensure(first)
	if len(made.Current) < mcp.MinTokenSecret || made.Previous != nil {
		t.Fatalf("%d and %d bytes", len(made.Current), len(made.Previous))
	}
	if again := ensure(ring()); !bytes.Equal(again.Current, made.Current) {
		t.Error("another process made another key")
	}
	now = now.Add(keyring.KeyLifetime)
	rotated := ensure(first)
	if bytes.Equal(rotated.Current, made.Current) || !bytes.Equal(rotated.Previous, made.Current) {
		t.Error("the old key does not verify any more, or still signs")
	}
	missing := ring()
	missing.Secret.Name = "none"
	if err := missing.Ensure(t.Context()); err == nil || missing.Keys().Current != nil {
		t.Errorf("no Secret: %v", err)
	}
}
