package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sharedos-dev/operator/bridge"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Op is what a request asks for.
type Op string

// The requests.
const (
	// OpStatus is answered at once.
	OpStatus Op = "status"
	// OpWait is answered once the sidecar is no longer starting.
	OpWait Op = "wait"
	// OpOutcome is answered once the kernel has the outcome.
	OpOutcome Op = "outcome"
)

// State is where the sidecar stands.
type State string

// The states.
const (
	StateStarting State = "starting"
	// StateReady: the bridge listens and the kernel knows it.
	StateReady State = "ready"
	// StateEnded: the turn is over and the bridge is closed.
	StateEnded State = "ended"
	// StateFailed: the bridge will not come up in this process.
	StateFailed State = "failed"
)

// Status is the sidecar's state.
type Status struct {
	State State `json:"state"`
	// Initialized says that an MCP client has completed initialize.
	Initialized bool `json:"initialized"`
	// Message explains a failure.
	Message string `json:"message,omitempty"`
}

// request is the line a client sends.
type request struct {
	Op Op `json:"op"`
	// Outcome belongs to OpOutcome.
	Outcome *bridge.Outcome `json:"outcome,omitempty"`
}

// response is the line it gets.
type response struct {
	Status Status `json:"status"`
	// Error says why the request was not done.
	Error string `json:"error,omitempty"`
}

// Limits of one line, bytes. A request may carry an outcome, whose output is in
// base64.
const (
	maxRequest  = bridge.MaxOutputBytes*4/3 + 64<<10
	maxResponse = 64 << 10
)

// errTooLong says that a line exceeds its limit.
var errTooLong = errors.New("line is too long")

// readLine reads one line without its end. A line that the connection's end cuts
// off is none.
func readLine(r io.Reader, limit int) ([]byte, error) {
	buffered := bufio.NewReaderSize(r, 4096)
	var line []byte
	for {
		part, err := buffered.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, errTooLong
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode line: %w", err)
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// parseRequest accepts a known request with exactly what belongs to it.
func parseRequest(line []byte) (request, error) {
	var r request
	if err := strictjson.Unmarshal(line, &r, strictjson.Options{}); err != nil {
		return request{}, fmt.Errorf("decode request: %w", err)
	}
	switch r.Op {
	case OpStatus, OpWait:
		if r.Outcome != nil {
			return request{}, errors.New("the request carries an outcome that does not belong to it")
		}
	case OpOutcome:
		return r, checkOutcome(r.Outcome)
	default:
		return request{}, errors.New("unknown request")
	}
	return r, nil
}

// maxOutcomeMessage bounds an outcome's message, bytes.
const maxOutcomeMessage = 4096

func checkOutcome(o *bridge.Outcome) error {
	switch {
	case o == nil:
		return errors.New("the request lacks its outcome")
	case len(o.Output) > bridge.MaxOutputBytes:
		return errors.New("the outcome's output is too long")
	case o.OutputSize < int64(len(o.Output)):
		return errors.New("the outcome's output is longer than its size")
	case len(o.Message) > maxOutcomeMessage:
		return errors.New("the outcome's message is too long")
	case o.ExitCode < 0 || o.ExitCode > 255:
		return errors.New("the outcome's exit code is not one")
	}
	return nil
}

func parseResponse(line []byte) (response, error) {
	var r response
	if err := strictjson.Unmarshal(line, &r, strictjson.Options{}); err != nil {
		return response{}, fmt.Errorf("decode answer: %w", err)
	}
	return r, nil
}
