package sessions

import (
	"encoding/json"
	"fmt"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/envelope"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Codes of a harness that did not succeed. Source: spec page 04, "Runtimes shipped".
const (
	CodeHarnessNotStarted = "harness_not_started"
	CodeHarnessExited     = "harness_exited_without_outcome"
)

// EnvelopeOutcome is a harness's report as the envelope takes it. An exit code of 0
// is no success when no MCP client ever connected: some harnesses exit so when
// they cannot reach the bridge.
func EnvelopeOutcome(o bridge.Outcome, jsonOutput bool) envelope.Outcome {
	switch {
	case !o.Started:
		return failed(CodeHarnessNotStarted, "the harness could not be started: "+o.Message, map[string]any{"exitCode": o.ExitCode})
	case o.OOMKilled:
		return failed(CodeHarnessExited,
			fmt.Sprintf("the harness exited with code %d (OOMKilled): its container used all the memory that its limit allows", o.ExitCode),
			map[string]any{"exitCode": o.ExitCode, "reason": "OOMKilled"})
	case o.ExitCode != 0:
		return failed(CodeHarnessExited, fmt.Sprintf("the harness exited with code %d", o.ExitCode), map[string]any{"exitCode": o.ExitCode})
	case !o.Initialized:
		return failed(CodeHarnessExited, "the harness exited without ever connecting to the bridge",
			map[string]any{"exitCode": 0, "initialized": false})
	}
	return completed(o, jsonOutput)
}

func completed(o bridge.Outcome, jsonOutput bool) envelope.Outcome {
	if jsonOutput {
		if o.OutputSize > int64(len(o.Output)) { // cut, and no JSON any more
			return failed(contract.CodeInvalidRuntimeOutcome, fmt.Sprintf(
				"the harness printed %d bytes, of which the first %d are kept: a JSON output may not be longer; print less, or let the Harness say that it prints text",
				o.OutputSize, len(o.Output)), map[string]any{"outputSize": o.OutputSize, "outputTruncated": true})
		}
		if strictjson.Check(o.Output) != nil {
			return failed(contract.CodeInvalidRuntimeOutcome, "the harness's output is not one JSON value, as its Harness says it is", nil)
		}
		return envelope.Outcome{Kind: envelope.OutcomeCompleted, Output: o.Output}
	}
	text, err := json.Marshal(string(o.Output))
	if err != nil {
		return failed(contract.CodeInvalidRuntimeOutcome, "the harness's output cannot be encoded", nil)
	}
	return envelope.Outcome{Kind: envelope.OutcomeCompleted, Output: text}
}

func failed(code, message string, details map[string]any) envelope.Outcome {
	failure := &contract.ProtocolError{Code: code, Message: message}
	if details != nil {
		if raw, err := json.Marshal(details); err == nil {
			failure.Details = raw
		}
	}
	return envelope.Outcome{Kind: envelope.OutcomeFailed, Error: failure}
}
