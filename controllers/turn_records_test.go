package controllers_test

import (
	"encoding/json"
	"testing"

	"github.com/sharedos-dev/operator/controllers"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/kerneltest"
)

func TestEncodeEventsStaysJSON(t *testing.T) {
	const count = 20000
	events := make([]contract.ExecutionEvent, count)
	for i := range events {
		events[i] = contract.ExecutionEvent{
			Version: contract.Version, EventID: "e", ExecutionID: "x", TraceID: "t", Sequence: int64(i),
			Type: contract.EventToolCompleted, Data: contract.Object(`{"tool":"files.read"}`), OccurredAt: contract.At(kerneltest.Epoch),
		}
	}
	for name, limit := range map[string]int{"all fits": 64 << 20, "most does not": 100 << 10, "nothing does": 2} {
		t.Run(name, func(t *testing.T) {
			raw := controllers.EncodeEvents(events, limit)
			var got []contract.ExecutionEvent
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatalf("not JSON: %v", err)
			}
			if len(raw) > limit {
				t.Errorf("%d bytes, want at most %d", len(raw), limit)
			}
			switch {
			case limit == 2 && len(got) != 0, limit > 2 && (got[0].Sequence != 0 || got[len(got)-1].Sequence != count-1):
				t.Errorf("%d events left, and not the first and the last", len(got))
			case limit == 64<<20 && len(got) != count:
				t.Errorf("%d events, want all", len(got))
			}
		})
	}
	if events[count/2].Sequence != count/2 {
		t.Error("the events themselves were changed")
	}
}
