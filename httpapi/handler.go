package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// NewHandler returns the API as a handler for a listener of the caller's own, such
// as [Listen]. It takes paths as they were sent: nothing may clean, strip or
// redirect them before it.
func NewHandler(opts Options) (http.Handler, error) {
	if err := opts.complete(); err != nil {
		return nil, fmt.Errorf("serve the HTTP API: %w", err)
	}
	document, err := Document(opts.Prefix)
	if err != nil {
		return nil, fmt.Errorf("serve the HTTP API: %w", err)
	}
	return &handler{opts: opts, paths: pathsOf(routes()), document: document}, nil
}

type handler struct {
	opts     Options
	paths    map[string]*resource
	document []byte
}

// resource is one path with its methods.
type resource struct {
	methods map[string]*route
	allow   string
	// public paths resolve no context.
	public bool
}

func pathsOf(table []route) map[string]*resource {
	paths := make(map[string]*resource)
	for i := range table {
		r := &table[i]
		at := paths[r.path]
		if at == nil {
			at = &resource{methods: make(map[string]*route), public: r.public}
			paths[r.path] = at
		}
		at.methods[r.method] = r
		if at.allow != "" {
			at.allow += ", "
		}
		at.allow += r.method
	}
	return paths
}

// find returns the resource that the target names. Paths are compared as they were
// sent: an escaped character, a second slash or a dot segment makes another path.
func (h *handler) find(r *http.Request) *resource {
	path := r.URL.Path
	if r.URL.RawPath != "" {
		path = r.URL.EscapedPath()
	}
	rest, ok := strings.CutPrefix(path, h.opts.Prefix)
	if !ok {
		return nil
	}
	return h.paths[rest]
}

// ServeHTTP implements [http.Handler]. Identity comes before everything else, so
// that who is unknown learns nothing, not even which paths exist.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{h: h, w: w, r: r, id: h.requestID(r)}
	defer x.contain()
	x.limitRead()
	at := h.find(r)
	if at == nil || !at.public {
		if failed := x.resolve(r); failed != nil {
			x.fail(failed)
			return
		}
	}
	if at == nil {
		x.fail(&failure{status: http.StatusNotFound, code: codeNotFound, message: "no such path"})
		return
	}
	rt := at.methods[r.Method]
	if rt == nil {
		w.Header().Set("Allow", at.allow)
		x.fail(&failure{status: http.StatusMethodNotAllowed, code: codeMethodNotAllowed, message: "this path takes " + at.allow})
		return
	}
	var body []byte
	if rt.request != nil {
		var failed *failure
		if body, failed = x.read(); failed != nil {
			x.fail(failed)
			return
		}
	}
	status, answer, failed := rt.serve(x, body)
	if failed != nil {
		x.fail(failed)
		return
	}
	x.answer(status, answer)
}

// exchange is one request with what is known of it.
type exchange struct {
	h  *handler
	w  http.ResponseWriter
	r  *http.Request
	id string
	ac contract.AccessContext
	// openTrace is true while the trace is the caller's to name.
	openTrace bool
}

// resolve asks who is calling and checks the answer.
func (x *exchange) resolve(r *http.Request) *failure {
	asked := r.WithContext(r.Context())
	asked.Body, asked.GetBody, asked.ContentLength = http.NoBody, nil, 0
	ac, err := x.h.opts.Resolver.ResolveContext(asked)
	if err != nil {
		return failureOf(err)
	}
	if ac.TraceID == "" && x.h.opts.CallerTraces {
		ac.TraceID, x.openTrace = x.id, true
	}
	if err := ac.Validate(); err != nil {
		return &failure{
			status: http.StatusInternalServerError, code: codeInvalidAccessContext, message: "the server could not establish who is calling",
			cause: fmt.Errorf("resolved context: %w", err),
		}
	}
	x.ac = ac
	return nil
}

// traced adopts the trace of a body where it is the caller's to name.
func (x *exchange) traced(id string) {
	if x.openTrace {
		x.ac.TraceID = id
	}
}

// PanicError is what a panic is to [Options.OnError].
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// contain answers a panic with a 500, and lets an abort through.
func (x *exchange) contain() {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	x.fail(failureOf(&PanicError{Value: v, Stack: debug.Stack()}))
}

// limitRead bounds how long a body may take, also one that nobody wants: net/http
// reads on a little so that the connection can be used again. net/http lifts the
// limit when the body is read.
func (x *exchange) limitRead() {
	if x.h.opts.ReadTimeout > 0 && x.r.ContentLength != 0 {
		// A writer without deadlines is a test's.
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(x.h.opts.ReadTimeout))
	}
}
