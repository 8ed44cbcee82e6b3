package keyring

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/mcp"
)

const (
	keyCurrent  = "current"
	keyPrevious = "previous"
	// annotationRotated is when the current key was made.
	annotationRotated = "sharedos.dev/rotated-at"

	// KeyLifetime is how long a key signs. It verifies as long again.
	KeyLifetime = 30 * 24 * time.Hour
	// checkEvery is how often the age is looked at.
	checkEvery = time.Hour
	retryAfter = time.Second
	keyBytes   = 32
)

// Keyring holds the keys. The zero value of its keys signs and accepts nothing.
type Keyring struct {
	// Reader must not be a cache.
	Reader client.Reader
	Writer client.Writer
	// Secret is the keys' home; it exists, possibly empty.
	Secret types.NamespacedName
	Clock  func() time.Time

	keys atomic.Pointer[mcp.Keys]
}

// Keys returns the keys as they are now.
func (k *Keyring) Keys() mcp.Keys {
	if keys := k.keys.Load(); keys != nil {
		return *keys
	}
	return mcp.Keys{}
}

// Ensure loads the keys and makes or rotates the current one when it is due.
func (k *Keyring) Ensure(ctx context.Context) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		secret := &corev1.Secret{}
		if err := k.Reader.Get(ctx, k.Secret, secret); err != nil {
			return err
		}
		if k.due(secret) {
			if err := k.rotate(ctx, secret); err != nil {
				return err
			}
		}
		k.keys.Store(&mcp.Keys{Current: secret.Data[keyCurrent], Previous: secret.Data[keyPrevious]})
		return nil
	})
	if err != nil {
		return fmt.Errorf("ensure the signing keys in secret %s: %w", k.Secret, err)
	}
	return nil
}

func (k *Keyring) due(secret *corev1.Secret) bool {
	if len(secret.Data[keyCurrent]) < mcp.MinTokenSecret {
		return true
	}
	rotated, err := time.Parse(time.RFC3339, secret.Annotations[annotationRotated])
	return err != nil || k.Clock().Sub(rotated) >= KeyLifetime
}

func (k *Keyring) rotate(ctx context.Context, secret *corev1.Secret) error {
	before := secret.DeepCopy()
	fresh := make([]byte, keyBytes)
	_, _ = rand.Read(fresh) // it never fails
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	if old := secret.Data[keyCurrent]; len(old) >= mcp.MinTokenSecret {
		secret.Data[keyPrevious] = old
	}
	secret.Data[keyCurrent] = fresh
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[annotationRotated] = k.Clock().UTC().Format(time.RFC3339)
	return k.Writer.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// Start keeps the keys fresh until ctx ends. It is the leader's.
func (k *Keyring) Start(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx)
	for {
		wait := checkEvery
		if err := k.Ensure(ctx); err != nil {
			log.Error(err, "Signing keys are not available")
			wait = retryAfter
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}
