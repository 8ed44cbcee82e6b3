package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/kernel"
)

// readTimeout bounds one page; a cache that has not been filled yet takes longest.
const readTimeout = 15 * time.Second

// Options configure the console. Reader, Clock and NewID are required.
type Options struct {
	// Reader reads Principals, Grants, ToolNamespaces, Harnesses and Turns. A cache
	// is right: nothing is decided here.
	Reader client.Reader
	// Clock returns the present instant.
	Clock func() time.Time
	// NewID mints an identifier, as the kernel wants one.
	NewID func() string
	// Log is told of pages that could not be made. The zero value is silent.
	Log logr.Logger
}

type console struct {
	opts   Options
	reads  reads
	kernel *kernel.Kernel
	views  *views
}

// NewHandler makes the console's handler: pages, style sheet and icon behind the
// checks that keep other sites and other hosts out.
func NewHandler(opts Options) (http.Handler, error) {
	if opts.Reader == nil || opts.Clock == nil || opts.NewID == nil {
		return nil, errors.New("reader, clock and id source are required")
	}
	v, err := newViews()
	if err != nil {
		return nil, err
	}
	c := &console{opts: opts, reads: reads{shared{opts.Reader}}, views: v}
	if c.kernel, err = newKernel(opts); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for pattern, gather := range map[string]func(context.Context, request) (view, error){
		"GET /{$}":                  c.start,
		"GET /turns":                c.turns,
		"GET /turns/{world}/{name}": c.turn,
		"GET /reach":                c.reach,
		"GET /refusals":             c.refusals,
		"GET /escalations":          c.escalations,
		"GET /":                     func(context.Context, request) (view, error) { return view{}, notFound("There is no such page.") },
	} {
		mux.Handle(pattern, c.page(gather))
	}
	mux.Handle("GET "+v.stylePath, asset("text/css; charset=utf-8", v.style))
	mux.Handle("GET "+iconPath, asset("image/svg+xml", v.icon))
	return guard(mux), nil
}

// request is what a page is asked for.
type request struct {
	query
	// world and name of the path, for a page about one object.
	world, name string
}

// page makes a handler of a function that gathers what a page shows.
func (c *console) page(gather func(context.Context, request) (view, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
		defer cancel()
		q, err := parseQuery(r.URL.Query())
		var v view
		if err == nil {
			v, err = gather(ctx, request{query: q, world: r.PathValue("world"), name: r.PathValue("name")})
		}
		status := http.StatusOK
		if err != nil {
			v, status = c.problem(r, err)
			v.World = q.World
		}
		v.Now = c.opts.Clock()
		body, err := c.views.render(v)
		if err != nil {
			c.opts.Log.Error(err, "A page of the console could not be made", "path", r.URL.Path)
			http.Error(w, "This page could not be made; the manager's log says why.", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write(body)
	})
}

// problem is the page that says what went wrong. Only our own words are shown; the
// error itself goes to the log.
func (c *console) problem(r *http.Request, err error) (view, int) {
	var p *problem
	if !errors.As(err, &p) {
		c.opts.Log.Error(err, "The console could not read what a page shows", "path", r.URL.Path)
		p = &problem{
			status: http.StatusServiceUnavailable, title: "Not available",
			message: "The objects could not be read. The manager may just have started: try again in a few seconds. Its log has the error.",
		}
	}
	return view{template: "problem", Title: p.title, Body: p.message}, p.status
}

// problem is a fault of what was asked for.
type problem struct {
	status         int
	title, message string
}

func (p *problem) Error() string { return p.message }

func notFound(message string) error {
	return &problem{status: http.StatusNotFound, title: "Not found", message: message}
}

func badRequest(message string) error {
	return &problem{status: http.StatusBadRequest, title: "Not understood", message: message}
}
