package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/httpapi"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// TestDeliveryStatuses: only an accepted delivery is a 202.
func TestDeliveryStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]int{
		contract.DeliveryAccepted: 202, contract.DeliveryDelivered: 200, contract.DeliveryDenied: 200, contract.DeliveryFailed: 200,
	} {
		api := allow()
		api.send = func(_ context.Context, _ contract.AccessContext, m contract.MessageEnvelope) (contract.MessageDeliveryResult, error) {
			r := contract.MessageDeliveryResult{MessageID: m.ID, Timestamp: seedNow, Status: status}
			if want == 200 && status != contract.DeliveryDelivered {
				r.Error = &contract.ProtocolError{Code: "no_matching_grant", Message: "No grant allows it."}
			}
			return r, nil
		}
		g := do(t, http.MethodPost, serve(t, httpapi.Options{API: api}).URL+"/v1/messages", seedMessage)
		if g.status != want || !strings.Contains(g.body, `"status":"`+status+`"`) {
			t.Errorf("%s: status %d, want %d, body %s", status, g.status, want, g.body)
		}
	}
}

// TestDenialsAre200: a refusal is an answer.
func TestDenialsAre200(t *testing.T) {
	t.Parallel()
	opts, _ := seedOptions(t, contract.Agent("bob-assistant"), seedGrants(contract.Agent("bob-assistant"))[2])
	server := serve(t, opts)
	for path, tt := range map[string]struct{ body, want string }{
		"/v1/authorize":        {seedAuthorize, `"allowed":false,"reasonCode":"no_matching_grant"`},
		"/v1/tools/invoke":     {seedCall, `"status":"denied","error":{"code":"tool_unavailable"`},
		"/v1/resources/invoke": {seedOperation, `"status":"denied","error":{"code":"no_matching_grant"`},
		"/v1/messages":         {seedMessage, `"status":"denied","error":{"code":"no_matching_grant"`},
	} {
		g := do(t, http.MethodPost, server.URL+path, tt.body)
		if g.status != 200 || !strings.Contains(g.body, tt.want) {
			t.Errorf("%s: status %d, body %s", path, g.status, g.body)
		}
	}
	if g := do(t, http.MethodGet, server.URL+"/v1/tools", ""); g.status != 200 || g.body != "[]" {
		t.Errorf("tools: status %d, body %s", g.status, g.body)
	}
}

// TestAnswersAreExact: digits and characters of values are what they were.
func TestAnswersAreExact(t *testing.T) {
	t.Parallel()
	const value = `{"n":12345678901234567890.10,"s":"<&>\u2028","u":"ü"}`
	api := allow()
	api.operate = func(_ context.Context, _ contract.AccessContext, op contract.RemoteResourceOperation) (contract.ResourceResult, error) {
		return contract.ResourceResult{OperationID: op.OperationID, Status: contract.StatusSucceeded, Output: op.Input, CompletedAt: seedNow}, nil
	}
	body := strings.Replace(seedOperation, `"action"`, `"input":`+value+`,"action"`, 1)
	g := do(t, http.MethodPost, serve(t, httpapi.Options{API: api}).URL+"/v1/resources/invoke", body)
	if g.status != 200 || !strings.Contains(g.body, `"output":`+value) {
		t.Errorf("status %d, body %s", g.status, g.body)
	}
}
