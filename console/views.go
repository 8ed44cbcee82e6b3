package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"time"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/internal/plain"
)

//go:embed pages/*.html
var pages embed.FS

//go:embed assets/console.css
var style []byte

//go:embed assets/icon.svg
var icon []byte

const iconPath = "/icon.svg"

// view is one page: what the layout needs, and the body its template shows.
type view struct {
	template string
	// Title is the heading and, with the product's name, the window's title.
	Title string
	// Nav is the path of the entry that is current, if any.
	Nav string
	// World that the page is about; empty means all of them.
	World string
	// Now is when the page was made.
	Now  time.Time
	Body any
}

// Style is the path of the style sheet. It is set when the page is made.
type layout struct {
	view
	Style, Icon string
}

// Entries are the entries of the navigation. The world goes along.
func (l layout) Entries() []entry {
	q := query{World: l.World}
	out := []entry{
		{Path: "/", Name: "Overview"}, {Path: "/turns", Name: "Turns"}, {Path: "/reach", Name: "Reach"},
		{Path: "/refusals", Name: "Refusals"}, {Path: "/escalations", Name: "Escalations"},
	}
	for i := range out {
		out[i].Current = out[i].Path == l.Nav
		if out[i].Link = out[i].Path; i > 0 {
			out[i].Link = q.link(out[i].Path)
		}
	}
	return out
}

// Made is when the page was made.
func (l layout) Made() moment { return moment{at: l.Now, now: l.Now} }

type entry struct {
	Path, Name, Link string
	Current          bool
}

// views makes pages of templates that were parsed once.
type views struct {
	templates   map[string]*template.Template
	style, icon []byte
	stylePath   string
}

func newViews() (*views, error) {
	sum := sha256.Sum256(style)
	v := &views{
		templates: map[string]*template.Template{}, style: style, icon: icon,
		stylePath: "/style-" + hex.EncodeToString(sum[:8]) + ".css",
	}
	base, err := template.New("layout").Funcs(template.FuncMap{
		"badge": badgeOf, "turnLink": turnLink, "plural": plural,
	}).ParseFS(pages, "pages/layout.html", "pages/parts.html")
	if err != nil {
		return nil, fmt.Errorf("parse the layout: %w", err)
	}
	for _, name := range []string{"start", "turns", "turn", "reach", "refusals", "escalations", "problem"} {
		page, err := base.Clone()
		if err != nil {
			return nil, fmt.Errorf("clone the layout: %w", err)
		}
		if v.templates[name], err = page.ParseFS(pages, "pages/"+name+".html"); err != nil {
			return nil, fmt.Errorf("parse page %q: %w", name, err)
		}
	}
	return v, nil
}

// render makes the page. Nothing is sent before it is whole.
func (v *views) render(page view) ([]byte, error) {
	var out bytes.Buffer
	err := v.templates[page.template].ExecuteTemplate(&out, "layout.html", layout{view: page, Style: v.stylePath, Icon: iconPath})
	if err != nil {
		return nil, fmt.Errorf("make page %q: %w", page.template, err)
	}
	// Whatever text of an object is in it, nothing acts when it is read, or copied into
	// a terminal: doing it to the whole page forgets none.
	return []byte(plain.Lines(out.String())), nil
}

// badge is a state with the tone it is shown in. The word says it all; the tone is
// for the eye.
type badge struct{ Text, Tone string }

// badgeOf is the badge of a Turn's state.
func badgeOf(state v1alpha1.ConditionReason) badge {
	tone := ""
	switch state {
	case v1alpha1.TurnStateSucceeded:
		tone = "good"
	case v1alpha1.TurnStateDenied, v1alpha1.TurnStateFailed:
		tone = "bad"
	case v1alpha1.TurnStateEscalated:
		tone = "asks"
	case v1alpha1.TurnStateRunning, v1alpha1.TurnStateAdmitted:
		tone = "busy"
	default:
		tone = "quiet"
	}
	return badge{Text: string(state), Tone: tone}
}
