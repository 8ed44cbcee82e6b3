package kernel_test

import (
	"context"

	"github.com/sharedos-dev/operator/kernel/audit"
)

// discard is a sink that keeps nothing.
type discard struct{}

func (discard) Record(context.Context, audit.Event) error { return nil }
