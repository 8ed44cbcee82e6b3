package audit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sharedos-dev/operator/kernel/canonical"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// AppendJSON appends the event as canonical JSON. Text that is not valid UTF-8 is
// written with replacement characters, so that a record always parses.
func (e *Event) AppendJSON(dst []byte) ([]byte, error) {
	w := writer{dst: append(dst, '{'), start: len(dst) + 1}
	w.text("action", e.Action)
	w.address("actor", &e.Actor)
	w.text("at", e.At.String())
	w.address("authority", &e.Authority)
	w.text("authorityHash", e.AuthorityHash)
	w.text("catalogHash", e.CatalogHash)
	w.text("cause", e.Cause)
	w.flag("consumed", e.Consumed)
	w.text("endedBy", e.EndedBy)
	w.flag("failClosed", e.FailClosed)
	w.text("grantId", e.GrantID)
	if e.GrantsResolved != nil {
		w.name("grantsResolved")
		w.dst = strconv.AppendInt(w.dst, int64(*e.GrantsResolved), 10)
	}
	w.text("id", e.ID)
	w.text("messageId", e.MessageID)
	w.object("metadata", e.Metadata)
	w.text("missingDependency", e.MissingDependency)
	w.text("namespaceId", e.NamespaceID)
	w.text("operationId", e.OperationID)
	w.text("outcome", string(e.Outcome))
	w.address("owner", &e.Owner)
	w.text("purpose", e.Purpose)
	w.text("reason", e.Reason)
	w.address("receiver", e.Receiver)
	w.rejected(e.RejectedGrants)
	w.request("requestedAuthority", e.RequestedAuthority)
	w.resource(e.Resource)
	w.text("source", string(e.Source))
	w.text("tool", e.Tool)
	w.text("traceId", e.TraceID)
	w.text("type", string(e.Type))
	w.text("version", e.Version)
	if w.err != nil {
		return nil, fmt.Errorf("encode audit event: %w", w.err)
	}
	return append(w.dst, '}'), nil
}

// writer appends members in the order it is called, which is canonical order.
type writer struct {
	dst   []byte
	start int
	err   error
}

func (w *writer) name(name string) {
	if len(w.dst) > w.start {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(canonical.AppendString(w.dst, name), ':')
}

func (w *writer) str(s string) {
	w.dst = canonical.AppendString(w.dst, strings.ToValidUTF8(s, "\uFFFD"))
}

func (w *writer) text(name, s string) {
	if s != "" {
		w.name(name)
		w.str(s)
	}
}

func (w *writer) flag(name string, b bool) {
	if b {
		w.name(name)
		w.dst = append(w.dst, "true"...)
	}
}

func (w *writer) address(name string, a *contract.Address) {
	if a == nil || a.Kind == "" {
		return
	}
	w.name(name)
	w.dst = a.AppendCanonical(w.dst)
}

func (w *writer) object(name string, raw contract.Object) {
	if len(raw) == 0 || w.err != nil {
		return
	}
	node, err := strictjson.Parse(raw)
	if err != nil {
		w.err = err
		return
	}
	w.name(name)
	w.dst, w.err = canonical.Append(w.dst, node)
}

func (w *writer) rejected(list []RejectedGrant) {
	if len(list) == 0 {
		return
	}
	w.name("rejectedGrants")
	w.dst = append(w.dst, '[')
	for i := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(w.dst, `{"grantId":`...)
		w.str(list[i].GrantID)
		w.dst = append(w.dst, `,"reason":`...)
		w.str(list[i].Reason)
		w.dst = append(w.dst, '}')
	}
	w.dst = append(w.dst, ']')
}

func (w *writer) request(name string, r *contract.CapabilityRequest) {
	if r == nil || w.err != nil {
		return
	}
	data, err := canonical.Marshal(r)
	if err != nil {
		w.err = err
		return
	}
	w.name(name)
	w.dst = append(w.dst, data...)
}

func (w *writer) resource(r *contract.ResourceRef) {
	if r == nil {
		return
	}
	w.name("resource")
	w.dst = append(w.dst, `{"namespace":`...)
	w.str(r.Namespace)
	if r.Owner != nil {
		w.dst = append(w.dst, `,"owner":`...)
		w.dst = r.Owner.AppendCanonical(w.dst)
	}
	w.dst = append(w.dst, `,"path":[`...)
	for i, segment := range r.Path {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.str(segment)
	}
	w.dst = append(w.dst, "]}"...)
}
