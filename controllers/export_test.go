package controllers

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

// Writes is what the Turn controller remembers of its writes.
type Writes struct{ w writes }

// Note remembers a write.
func (w *Writes) Note(over string, turn *v1alpha1.Turn) { w.w.note(over, turn) }

// Get is what is to be gone on with.
func (w *Writes) Get(cached *v1alpha1.Turn) (*v1alpha1.Turn, bool) { return w.w.get(cached) }

// Doubt follows a conflict.
func (w *Writes) Doubt(turn types.UID) { w.w.doubt(turn) }
