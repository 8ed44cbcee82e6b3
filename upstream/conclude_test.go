package upstream

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// TestWhatACallCameTo: the end of the call's time is told before what had come until
// then, unless that was a whole answer.
func TestWhatACallCameTo(t *testing.T) {
	t.Parallel()
	over, stop := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer stop()
	gone, leave := context.WithCancel(t.Context())
	leave()
	broke := errors.New("broke")
	for name, c := range map[string]struct {
		ctx     context.Context
		outcome outcome
		err     error
		code    string
	}{
		"malformed":                    {t.Context(), outcome{malformed: true}, broke, contract.CodeInvalidToolResult},
		"malformed, over":              {over, outcome{sent: true, status: 200, malformed: true}, broke, CodeTimeout},
		"malformed, over, told as one": {over, outcome{sent: true, status: 200, malformed: true}, nil, CodeTimeout},
		"malformed, gone":              {gone, outcome{malformed: true}, broke, CodeCancelled},
		"nothing, over":                {over, outcome{}, nil, CodeTimeout},
		"refused, over":                {over, outcome{refused: true}, broke, CodeProtocol},
		"too large, over":              {over, outcome{tooLarge: true}, broke, CodeTooLarge},
		"a status, over":               {over, outcome{status: 403}, broke, CodeCredentials},
	} {
		_, err := (&Client{}).conclude(c.ctx, Request{}, c.outcome, c.err)
		if f, ok := errors.AsType[*kernel.Failure](err); !ok || f.Err.Code != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}
