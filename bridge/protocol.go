// Package bridge is the protocol between a harness pod's bridge sidecar and the
// kernel service in the manager: paths, headers, bodies and error codes.
//
// It is HTTPS with HTTP/2 over one connection. Every request carries the pod's
// own ServiceAccount token (audience [Audience], bound to the pod) as the
// bearer. Every request but attach also carries the execution token in
// [HeaderExecutionToken]; neither is enough alone.
package bridge

import "github.com/sharedos-dev/operator/kernel/contract"

// Audience is the audience of the pod-bound ServiceAccount token.
const Audience = "sharedos-kernel"

// HeaderExecutionToken carries the execution token.
const HeaderExecutionToken = "Sharedos-Execution-Token" //nolint:gosec // a name, not a credential

// HeaderCallsBefore carries, with a call or an outcome, how many calls the bridge has
// sent before it in this turn, in decimal. A manager that took over counts on from there; it never
// lowers a count. It is a header so that both ends may be of different versions.
const HeaderCallsBefore = "Sharedos-Calls-Before"

// The five routes.
const (
	PathAttach  = "/bridge/v1/attach"  // POST AttachRequest -> AttachResponse
	PathCatalog = "/bridge/v1/catalog" // GET -> contract.Catalogue
	PathInvoke  = "/bridge/v1/invoke"  // POST InvokeRequest -> contract.ToolResult
	PathOutcome = "/bridge/v1/outcome" // POST Outcome -> 204
	PathSession = "/bridge/v1/session" // GET -> SessionEvent, one JSON object per line
)

// AttachRequest binds the calling pod to a Turn. The world is the namespace of
// the pod's token; the pod is the one the token is bound to.
type AttachRequest struct {
	// Turn is the Turn's name, 1 to 63 characters.
	Turn string `json:"turn"`
}

// AttachResponse is all a sidecar needs. It is kept in memory; only the message,
// the state and the connection file are written for the harness.
type AttachResponse struct {
	ExecutionID    string                   `json:"executionId"`
	NamespaceID    string                   `json:"namespaceId"`
	Actor          string                   `json:"actor"`
	TraceID        string                   `json:"traceId"`
	ExecutionToken string                   `json:"executionToken"`
	CatalogHash    string                   `json:"catalogHash"`
	Message        contract.MessageEnvelope `json:"message"`
	State          contract.Value           `json:"state,omitempty"`
	// Harness is codex, claude-code, deepseek, pi or custom; it decides which
	// connection file is written.
	Harness string `json:"harness"`
	// TimeoutSec is the per-call timeout written into the connection file, seconds.
	TimeoutSec int `json:"timeoutSec,omitempty"`
	// Instructions are handed to the MCP client at initialize.
	Instructions string `json:"instructions,omitempty"`
}

// InvokeRequest is one tools/call. CallID is minted by the bridge, fresh for
// every call; a repeat of the same CallID is answered with the first answer and
// never executed twice.
type InvokeRequest struct {
	CallID    string          `json:"callId"`
	Tool      string          `json:"tool"`
	Arguments contract.Object `json:"arguments"`
	// Alias is the name the harness sent when it was not the canonical one.
	Alias string `json:"alias,omitempty"`
	Step  *int64 `json:"step,omitempty"`
}

// Outcome is how the harness ended.
type Outcome struct {
	// Started is false when the command could not be started.
	Started bool `json:"started"`
	// ExitCode is the command's exit code; 128+n when signal n ended it.
	ExitCode int `json:"exitCode"`
	// Initialized says that an MCP client completed initialize on this bridge.
	Initialized bool `json:"initialized"`
	// Output is the first MaxOutputBytes of standard output.
	Output []byte `json:"output,omitempty"`
	// OutputSize and OutputSHA256 (lower-case hex) describe the whole output.
	OutputSize   int64  `json:"outputSize"`
	OutputSHA256 string `json:"outputSha256,omitempty"`
	// Message says why the command did not start.
	Message string `json:"message,omitempty"`
	// OOMKilled says that the system ended a process of a command that did not exit with
	// code 0, because its container had used all its memory.
	OOMKilled bool `json:"oomKilled,omitempty"`
}

// MaxOutputBytes is the most standard output an [Outcome] carries, bytes.
const MaxOutputBytes = 900 << 10

// SessionEventType is the type of one line of the session stream.
type SessionEventType string

// The lines of the session stream. The stream is opened once the sidecar is
// listening: that is what makes the bridge ready and starts the turn's deadline.
const (
	SessionAttached  SessionEventType = "attached"
	SessionHeartbeat SessionEventType = "heartbeat"
	SessionEnded     SessionEventType = "ended"
)

// HeartbeatSeconds is the time between two heartbeats; a stream silent for three
// of them is dead.
const HeartbeatSeconds = 5

// SessionEvent is one line of the session stream.
type SessionEvent struct {
	Type SessionEventType `json:"type"`
	// Status is the turn's ending, with type ended.
	Status contract.Status `json:"status,omitempty"`
}

// Error is the body of every answer that is not 2xx: {"error":{...}}.
type Error struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable,omitempty"`
}

// ErrorBody wraps an [Error].
type ErrorBody struct {
	Error Error `json:"error"`
}

// Error implements error.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Error codes with their HTTP status.
const (
	CodeUnauthenticated   = "unauthenticated"    // 401: one of the credentials is missing, invalid or expired
	CodePodNotBound       = "pod_not_bound"      // 403: another pod is bound to the turn
	CodeTurnNotFound      = "turn_not_found"     // 404
	CodeTurnNotReady      = "turn_not_ready"     // 409, retryable: not admitted or the pod not recorded yet
	CodeTurnEnded         = "turn_ended"         // 410
	CodeInvalidRequest    = "invalid_request"    // 400
	CodeKernelUnavailable = "kernel_unavailable" // 503, retryable: this replica does not lead, or is starting
	CodeInternal          = "internal_error"     // 500
)

// Paths inside the harness pod, all below [SharedDir].
const (
	// SharedDir is where the shared volume is mounted in every container;
	// read-only for all but the sidecar.
	SharedDir = "/sharedos"
	// WrapperPath is the copy of this binary that wraps the harness command.
	WrapperPath = SharedDir + "/bin/bridge-sidecar"
	// MessageFile is the whole message envelope as JSON.
	MessageFile = SharedDir + "/message.json"
	// MessageTextFile is the message's text alone.
	MessageTextFile = SharedDir + "/message.txt"
	// StateFile is the caller's resumption state as JSON, when there is one.
	StateFile = SharedDir + "/state.json"
	// ConfigDir holds the connection file of the harness type.
	ConfigDir = SharedDir + "/mcp"
	// ControlSocket is where the wrapper waits for the bridge and reports.
	ControlSocket = SharedDir + "/run/control.sock"
	// TokenFile is the pod-bound ServiceAccount token; only the sidecar's
	// container mounts it.
	TokenFile = "/var/run/secrets/sharedos-kernel/token" //nolint:gosec // a path, not a credential
	// DefaultPort is where the bridge listens on 127.0.0.1 unless the pod's
	// bridge-port annotation says otherwise.
	DefaultPort = 7411
)

// Environment variables.
const (
	EnvKernelURL  = "SHAREDOS_KERNEL_URL" // sidecar
	EnvKernelCA   = "SHAREDOS_KERNEL_CA"  // sidecar: PEM
	EnvBridgePort = "SHAREDOS_BRIDGE_PORT"
	EnvTurn       = "SHAREDOS_TURN"         // all containers
	EnvMCPURL     = "SHAREDOS_MCP_URL"      // harness
	EnvMCPConfig  = "SHAREDOS_MCP_CONFIG"   // harness: path of the connection file
	EnvMessage    = "SHAREDOS_MESSAGE_FILE" // harness: MessageFile
)

// ConfigFileName is the connection file's name inside [ConfigDir] by harness type.
func ConfigFileName(harness string) string {
	switch harness {
	case "codex":
		return "config.toml"
	case "deepseek":
		return "cordis.patch.yml"
	default:
		return ".mcp.json"
	}
}
