package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// What is stored beside a Turn's status, each in a ConfigMap of the Turn's.
const (
	recordGrants = "grants"
	recordEvents = "events"
	recordOutput = "output"
	// recordKey is the key of the content.
	recordKey = "content"
)

// maxRecord is the most bytes of one record; a ConfigMap holds 1 MiB in all.
const maxRecord = 900 << 10

func recordName(t *v1alpha1.Turn, kind string) v1alpha1.ObjectName {
	return v1alpha1.ObjectName(t.Name + "-" + kind)
}

// storeRecords applies the ConfigMaps before the status refers to them.
func (r *TurnReconciler) storeRecords(ctx context.Context, s *turnScope) error {
	for kind, content := range s.records {
		record := v1.ConfigMap(string(recordName(s.turn, kind)), s.turn.Namespace).
			WithOwnerReferences(ownedBy(s.turn)).
			WithLabels(map[string]string{v1alpha1.LabelTurn: s.turn.Name})
		if len(content) > maxRecord {
			content = content[:maxRecord]
		}
		if utf8.Valid(content) {
			record = record.WithData(map[string]string{recordKey: string(content)})
		} else {
			record = record.WithBinaryData(map[string][]byte{recordKey: content})
		}
		err := r.Client.Apply(ctx, record, client.FieldOwner(FieldOwner), client.ForceOwnership)
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			continue // the Turn goes with its namespace, and must not keep it
		}
		if err != nil {
			return fmt.Errorf("store the turn's %s: %w", kind, err)
		}
	}
	return nil
}

func decodeRecord(record *corev1.ConfigMap, into any) error {
	return json.Unmarshal([]byte(record.Data[recordKey]), into)
}

// EncodeEvents encodes a turn's events into at most that many bytes of JSON. What
// does not fit is left out in the middle, which the gap in the sequence shows.
func EncodeEvents(events []contract.ExecutionEvent, limit int) []byte {
	raw := encodeJSON(events)
	for len(raw) > limit && len(events) > 0 {
		// A little more than the share that is too much, so that a few rounds do.
		drop := min(len(events), len(events)*(len(raw)-limit)/len(raw)+1+len(events)/64)
		from := (len(events) - drop) / 2
		events = slices.Delete(slices.Clone(events), from, from+drop)
		raw = encodeJSON(events)
	}
	return raw
}

// encodeJSON encodes what always can be.
func encodeJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return raw
}

// ownedBy makes the Turn the owner, so that its children go with it.
func ownedBy(t *v1alpha1.Turn) *applymetav1.OwnerReferenceApplyConfiguration {
	return applymetav1.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind("Turn").
		WithName(t.Name).WithUID(t.UID).WithController(true).WithBlockOwnerDeletion(true)
}

// ownerOf is [ownedBy] for an object that is created.
func ownerOf(t *v1alpha1.Turn) metav1.OwnerReference {
	return *metav1.NewControllerRef(t, v1alpha1.GroupVersion.WithKind("Turn"))
}
