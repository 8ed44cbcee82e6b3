package plugin

import (
	"context"
	"io"
	"strings"
	gotest "testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestOpenLog: who follows waits until the container has started, and for nothing else.
func TestOpenLog(t *gotest.T) {
	waiting := apierrors.NewBadRequest(`container "harness" in pod "p" is waiting to start: PodInitializing`)
	unknown := apierrors.NewBadRequest(`container harness is not valid for pod p`)
	for name, c := range map[string]struct {
		follow  bool
		answers []error
		asked   int
		fails   bool
	}{
		"at once":           {false, []error{nil}, 1, false},
		"not followed":      {false, []error{waiting, nil}, 1, true},
		"followed":          {true, []error{waiting, waiting, nil}, 3, false},
		"another bad thing": {true, []error{unknown, nil}, 1, true},
	} {
		t.Run(name, func(t *gotest.T) {
			t.Parallel()
			asked := 0
			stream, err := openLog(t.Context(), c.follow, func(context.Context) (io.ReadCloser, error) {
				asked++
				if err := c.answers[asked-1]; err != nil {
					return nil, err
				}
				return io.NopCloser(strings.NewReader("written")), nil
			})
			if asked != c.asked || (err != nil) != c.fails || (stream == nil) != c.fails {
				t.Errorf("asked %d times, want %d: %v %v", asked, c.asked, stream, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := openLog(ctx, true, func(context.Context) (io.ReadCloser, error) {
		cancel()
		return nil, waiting
	})
	if err == nil {
		t.Error("it goes on when the person has had enough")
	}
}
