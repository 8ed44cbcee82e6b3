package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Attach binds this pod to the Turn and keeps the execution token of the answer
// for every later request. It repeats on connection errors and retryable codes
// until ctx ends: a pod may well exist before its Turn is admitted.
func (c *Client) Attach(ctx context.Context, turn string) (*bridge.AttachResponse, error) {
	body, err := json.Marshal(bridge.AttachRequest{Turn: turn})
	if err != nil {
		return nil, fmt.Errorf("encode attach request: %w", err)
	}
	answer, err := c.untilDone(ctx, request{
		method: http.MethodPost, path: bridge.PathAttach, body: body, timeout: c.attemptMax})
	if err != nil {
		return nil, err
	}
	var attached bridge.AttachResponse
	// A manager that was upgraded under a running pod may say more than this
	// sidecar knows.
	if err := strictjson.Unmarshal(answer, &attached, strictjson.Options{AllowUnknown: true}); err != nil {
		return nil, fmt.Errorf("decode answer to %s: %w", bridge.PathAttach, err)
	}
	if err := c.setExecutionToken(attached.ExecutionToken); err != nil {
		return nil, err
	}
	return &attached, nil
}

// Catalog fetches the turn's catalogue as the kernel publishes it. One that is
// malformed, or whose hash is not that of its tools, is an error; whether it is
// the turn's own is for the caller to check.
func (c *Client) Catalog(ctx context.Context) (*contract.Catalogue, error) {
	answer, err := c.untilDone(ctx, request{
		method: http.MethodGet, path: bridge.PathCatalog, timeout: c.attemptMax})
	if err != nil {
		return nil, err
	}
	catalogue, err := contract.Unmarshal[contract.Catalogue](answer)
	if err != nil {
		return nil, fmt.Errorf("decode answer to %s: %w", bridge.PathCatalog, err)
	}
	return &catalogue, nil
}

// Outcome reports how the harness ended. The kernel counts the first report
// only, so it is repeated until it is acknowledged or ctx ends.
func (c *Client) Outcome(ctx context.Context, o bridge.Outcome) error {
	body, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode outcome: %w", err)
	}
	calls := c.calls.Load()
	_, err = c.untilDone(ctx, request{
		method: http.MethodPost, path: bridge.PathOutcome, body: body, before: &calls, timeout: c.attemptMax})
	return err
}
