package api

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

const turnBase = `
apiVersion: sharedos.dev/v1alpha1
kind: Turn
metadata: {name: status-report}
spec:
  principal: alice-assistant
  message: {text: "When does Atlas ship?"}
`

// turnFull sets every field that is not set in turnBase and can be set beside it.
const turnFull = `spec: {purpose: p, executionId: e, state: "{}", options: {maxSteps: 1}, tools: [files.read], harness: h,
	startTimeoutMs: 1000, ttlSecondsAfterFinished: 60}`

var turnCases = []ruleCase{
	{"everything", turnFull, ""},
	{"whole message", `spec: {message: {text: null, id: m, from: alice, payload: "{\"n\": 9007199254740993}", replyTo: m0,
		provenance: {source: inbox, parentIds: [a], metadata: "{}"}, createdAt: "2026-08-24T09:00:00.123Z", traceId: t}}`, ""},

	{"name of 63 characters", `metadata: {name: ` + strings.Repeat("n", 63) + `}`, ""},
	{"name of 64 characters", `metadata: {name: ` + strings.Repeat("n", 64) + `}`, "metadata.name must have at most 63 characters"},
	{"generated name", `metadata: {name: null, generateName: turn-}`, ""},

	{"no principal", `spec: {principal: null}`, "spec.principal: Required value"},
	{"no message", `spec: {message: null}`, "spec.message: Required value"},
	{"text and payload", `spec: {message: {payload: "1"}}`, "exactly one of text and payload must be set"},
	{"neither text nor payload", `spec: {message: {text: null, id: m}}`, "exactly one of text and payload must be set"},
	{"empty text", `spec: {message: {text: ""}}`, "spec.message.text"},
	{"text of 262144 characters", `spec: {message: {text: "` + strings.Repeat("a", 262144) + `"}}`, ""},
	{"text of 262145 characters", `spec: {message: {text: "` + strings.Repeat("a", 262145) + `"}}`, "spec.message.text: Too long"},
	{"payload as an object", `spec: {message: {text: null, payload: {number: 1}}}`, `unknown field "spec.message.payload.number"`},
	{"state as an object", `spec: {state: {number: 1}}`, `unknown field "spec.state.number"`},
	{"state of 262145 characters", `spec: {state: "` + strings.Repeat("1", 262145) + `"}`, "spec.state: Too long"},
	{"createdAt that is no instant", `spec: {message: {createdAt: yesterday}}`, "spec.message.createdAt"},
	{"provenance without a source", `spec: {message: {provenance: {}}}`, "provenance.source: Required value"},
	{"65 parents", `spec: {message: {provenance: {source: s, parentIds: ` + repeat(65, "a") + `}}}`, "parentIds: Too many"},

	{"largest options", `spec: {options: {maxSteps: 1000, maxToolCalls: 10000, timeoutMs: 600000}}`, ""},
	{"no steps", `spec: {options: {maxSteps: 0}}`, "spec.options.maxSteps"},
	{"1001 steps", `spec: {options: {maxSteps: 1001}}`, "spec.options.maxSteps"},
	{"no calls", `spec: {options: {maxToolCalls: 0}}`, "spec.options.maxToolCalls"},
	{"10001 calls", `spec: {options: {maxToolCalls: 10001}}`, "spec.options.maxToolCalls"},
	{"no time", `spec: {options: {timeoutMs: 0}}`, "spec.options.timeoutMs"},
	{"600001 ms", `spec: {options: {timeoutMs: 600001}}`, "spec.options.timeoutMs"},
	{"fraction of a step", `spec: {options: {maxSteps: 1.5}}`, "spec.options.maxSteps"},

	{"no tools", `spec: {tools: []}`, ""},
	{"tool twice", `spec: {tools: [a, a]}`, "spec.tools[1]: Duplicate value"},
	{"tool that is none", `spec: {tools: ["a b"]}`, "spec.tools[0]"},
	{"harness and externalPod", `spec: {harness: h, externalPod: {ownerUID: u}}`, "externalPod must not be set together with harness"},
	{"externalPod", `spec: {externalPod: {ownerUID: u}}`, ""},
	{"externalPod without an owner", `spec: {externalPod: {}}`, "externalPod.ownerUID: Required value"},
	{"negative ttl", `spec: {ttlSecondsAfterFinished: -1}`, "spec.ttlSecondsAfterFinished"},
	{"cancelled from the start", `spec: {cancel: true}`, ""},
	{"grants in a message", `spec: {message: {grants: []}}`, `unknown field "spec.message.grants"`},
}

// turnChanges has, for each field of a Turn's spec, another value than turnBase
// and turnFull give it.
var turnChanges = map[string]string{
	"principal":               `spec: {principal: bob-assistant}`,
	"purpose":                 `spec: {purpose: other}`,
	"executionId":             `spec: {executionId: other}`,
	"message":                 `spec: {message: {text: other}}`,
	"state":                   `spec: {state: "1"}`,
	"options":                 `spec: {options: {maxSteps: 2}}`,
	"tools":                   `spec: {tools: [files.list]}`,
	"harness":                 `spec: {harness: other}`,
	"externalPod":             `spec: {externalPod: {ownerUID: other}}`,
	"startTimeoutMs":          `spec: {startTimeoutMs: 2000}`,
	"ttlSecondsAfterFinished": `spec: {ttlSecondsAfterFinished: 61}`,
}

const immutable = "a Turn is immutable except for cancel"

func TestTurnRules(t *testing.T) { testCreates(t, turnBase, turnCases) }

var turnCancelCases = []updateCase{
	{"cancel", "{}", `spec: {cancel: true}`, ""},
	{"unset", `spec: {cancel: true}`, `spec: {cancel: false}`, "a cancelled Turn cannot be resumed"},
	{"remove", `spec: {cancel: true}`, `spec: {cancel: null}`, "a cancelled Turn cannot be resumed"},
	{"false stays free", `spec: {cancel: false}`, `spec: {cancel: null}`, ""},
	{"labels may change", "{}", `metadata: {labels: {a: b}}`, ""},
}

func TestTurnCancel(t *testing.T) { testUpdates(t, turnBase, turnCancelCases) }

// TestTurnIsImmutable changes, adds and removes every field of the spec but cancel.
// It finds the fields by reflection, so a new one cannot be forgotten.
func TestTurnIsImmutable(t *testing.T) {
	var cases []updateCase
	for member := range reflect.TypeFor[v1alpha1.TurnSpec]().Fields() {
		field, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		if field == "cancel" {
			continue
		}
		change, ok := turnChanges[field]
		if !ok {
			t.Errorf("turnChanges lacks the field %s", field)
			continue
		}
		before := turnFull
		if field == "externalPod" {
			before = `spec: {externalPod: {ownerUID: u}}`
		}
		cases = append(cases, updateCase{"change " + field, before, change, immutable})
		if field != "principal" && field != "message" {
			cases = append(cases,
				updateCase{"add " + field, "{}", change, immutable},
				updateCase{"remove " + field, before, `spec: {` + field + `: null}`, immutable})
		}
	}
	for name, change := range map[string]string{
		"payload for text": `spec: {message: {text: null, payload: "{}"}}`,
		"sender":           `spec: {message: {from: bob}}`,
		"another tool":     `spec: {tools: [files.read, files.list]}`,
	} {
		cases = append(cases, updateCase{name, turnFull, change, immutable})
	}
	testUpdates(t, turnBase, cases)
}
