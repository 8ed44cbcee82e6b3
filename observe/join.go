package observe

import (
	"context"
	"slices"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Join is one observer that tells all of them, the last one's end first.
func Join(observers ...kernel.Observer) kernel.Observer { return joined(observers) }

type joined []kernel.Observer

// Start implements [kernel.Observer].
func (j joined) Start(ctx context.Context, span kernel.Span) (context.Context, func(contract.Status, string)) {
	ends := make([]func(contract.Status, string), len(j))
	for i, o := range j {
		ctx, ends[i] = o.Start(ctx, span)
	}
	return ctx, func(status contract.Status, code string) {
		for _, end := range slices.Backward(ends) {
			end(status, code)
		}
	}
}
