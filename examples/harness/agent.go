package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The keys of SharedOS in _meta.
const (
	metaCatalogHash = "sharedos/catalogHash"
	metaExecutionID = "sharedos/executionId"
	metaStatus      = "sharedos/status"
	metaCode        = "sharedos/code"
)

// agent is a session with the bridge.
type agent struct {
	session *mcp.ClientSession
	stderr  io.Writer
}

func connect(ctx context.Context, c connection, stderr io.Writer) (*agent, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "sharedos-example-harness", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: c.URL, HTTPClient: c.httpClient(), DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to the bridge: %w", err)
	}
	server := session.InitializeResult()
	fmt.Fprintf(stderr, "connected to %s %s, protocol %s\n", server.ServerInfo.Name, server.ServerInfo.Version, server.ProtocolVersion)
	return &agent{session, stderr}, nil
}

// close ends the session; a bridge whose turn is over no longer answers.
func (a *agent) close() { _ = a.session.Close() }

// do lists the tools, sleeps if asked to, and makes the calls one after the other,
// pausing between them if asked to.
func (a *agent) do(ctx context.Context, job task, r *report) error {
	list, err := a.session.ListTools(ctx, nil)
	if err != nil {
		return fmt.Errorf("list tools: %w", err)
	}
	r.CatalogHash, r.ExecutionID = text(list.Meta, metaCatalogHash), text(list.Meta, metaExecutionID)
	for _, tool := range list.Tools {
		r.Tools = append(r.Tools, tool.Name)
	}
	fmt.Fprintf(a.stderr, "granted: %s\n", strings.Join(r.Tools, ", "))
	if err := sleep(ctx, job.SleepSeconds); err != nil {
		return err
	}
	for i, c := range job.Calls {
		if i > 0 {
			if err := sleep(ctx, job.PauseSeconds); err != nil {
				return err
			}
		}
		answer, err := a.call(ctx, c)
		if err != nil {
			return err
		}
		r.Calls = append(r.Calls, answer)
		fmt.Fprintf(a.stderr, "%s %s: %s %s\n", c.Tool, c.Arguments, answer.Status, answer.Code)
	}
	return nil
}

// call makes one call. A JSON-RPC error is an answer; only a broken session is not.
func (a *agent) call(ctx context.Context, c call) (callReport, error) {
	params := &mcp.CallToolParams{Name: c.Tool}
	if len(c.Arguments) > 0 {
		params.Arguments = c.Arguments
	}
	out := callReport{Tool: c.Tool, Arguments: c.Arguments, Status: "succeeded"}
	result, err := a.session.CallTool(ctx, params)
	var coded *jsonrpc.Error
	switch {
	case errors.As(err, &coded):
		out.IsError, out.Status = true, "error"
		out.Code, out.Text = strconv.FormatInt(coded.Code, 10), coded.Message
		return out, nil
	case err != nil:
		return out, fmt.Errorf("call %s: %w", c.Tool, err)
	}
	out.IsError, out.Structured = result.IsError, result.StructuredContent
	for _, block := range result.Content {
		if t, ok := block.(*mcp.TextContent); ok {
			out.Text += t.Text
		}
	}
	if status := text(result.Meta, metaStatus); status != "" {
		out.Status = status
	}
	out.Code = text(result.Meta, metaCode)
	return out, nil
}

func text(meta mcp.Meta, key string) string {
	value, _ := meta[key].(string)
	return value
}

func sleep(ctx context.Context, seconds float64) error {
	if seconds <= 0 {
		return nil
	}
	timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
