package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sharedos-dev/operator/api/v1alpha1"
)

const (
	pageSize     = 50
	maxPage      = 100000
	maxPurpose   = 512
	defaultHours = 24
)

// states are those a Turn can be in, in the order of its life.
var states = []v1alpha1.ConditionReason{
	v1alpha1.TurnStatePending, v1alpha1.TurnStateAdmitted, v1alpha1.TurnStateRunning, v1alpha1.TurnStateSucceeded,
	v1alpha1.TurnStateDenied, v1alpha1.TurnStateFailed, v1alpha1.TurnStateCancelled, v1alpha1.TurnStateEscalated,
}

// spans are the lengths of time that refusals are counted over, hours.
var spans = []int{24, 72, 168}

// query is the parameters of a page, checked. Absent ones are empty.
type query struct {
	World, Principal, Purpose string
	State                     v1alpha1.ConditionReason
	Page, Hours               int
}

// parseQuery checks every parameter that a page knows; others are ignored.
func parseQuery(values url.Values) (query, error) {
	q := query{Page: 1, Hours: defaultHours}
	one := func(name string) string {
		if all := values[name]; len(all) > 0 {
			return all[0]
		}
		return ""
	}
	for _, name := range []string{"world", "principal", "purpose", "state", "page", "hours"} {
		if len(values[name]) > 1 {
			return query{}, badRequest(fmt.Sprintf("The parameter %q is given twice.", name))
		}
	}
	q.World, q.Principal, q.Purpose = one("world"), one("principal"), one("purpose")
	q.State = v1alpha1.ConditionReason(one("state"))
	if err := q.checkNames(); err != nil {
		return query{}, err
	}
	var err error
	if text := one("page"); text != "" {
		if q.Page, err = strconv.Atoi(text); err != nil || q.Page < 1 || q.Page > maxPage {
			return query{}, badRequest(`The parameter "page" must be a number from 1.`)
		}
	}
	if text := one("hours"); text != "" {
		if q.Hours, err = strconv.Atoi(text); err != nil || !slices.Contains(spans, q.Hours) {
			return query{}, badRequest(`The parameter "hours" must be 24, 72 or 168.`)
		}
	}
	return q, nil
}

func (q query) checkNames() error {
	switch {
	case q.World != "" && validation.IsDNS1123Label(q.World) != nil:
		return badRequest(`The parameter "world" must be the name of a namespace.`)
	case q.Principal != "" && validation.IsDNS1123Subdomain(q.Principal) != nil:
		return badRequest(`The parameter "principal" must be the name of a Principal.`)
	case !utf8.ValidString(q.Purpose) || utf8.RuneCountInString(q.Purpose) > maxPurpose:
		return badRequest(`The parameter "purpose" must have at most 512 characters.`)
	case q.State != "" && !slices.Contains(states, q.State):
		return badRequest(`The parameter "state" must be a state of a Turn, such as Running.`)
	default:
		return nil
	}
}

// link is a path with the parameters that are set.
func (q query) link(path string) string {
	values := url.Values{}
	for name, value := range map[string]string{
		"world": q.World, "principal": q.Principal, "purpose": q.Purpose, "state": string(q.State),
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Page > 1 {
		values.Set("page", strconv.Itoa(q.Page))
	}
	if q.Hours != 0 && q.Hours != defaultHours {
		values.Set("hours", strconv.Itoa(q.Hours))
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// turnLink is the path of a Turn's page.
func turnLink(t *v1alpha1.Turn) string {
	return "/turns/" + url.PathEscape(t.Namespace) + "/" + url.PathEscape(t.Name)
}

// pager is where in a long list a page is.
type pager struct {
	Page, Pages, From, To, Total int
	Previous, Next               string
}

// paged cuts a list to the page that is asked for.
func paged[T any](all []T, q query, path string) ([]T, pager, error) {
	pages := max(1, (len(all)+pageSize-1)/pageSize)
	if q.Page > pages {
		return nil, pager{}, notFound(fmt.Sprintf("There is no page %d: the list has %d.", q.Page, pages))
	}
	from := (q.Page - 1) * pageSize
	to := min(len(all), from+pageSize)
	p := pager{Page: q.Page, Pages: pages, From: min(from+1, to), To: to, Total: len(all)}
	if q.Page > 1 {
		before := q
		before.Page--
		p.Previous = before.link(path)
	}
	if q.Page < pages {
		after := q
		after.Page++
		p.Next = after.link(path)
	}
	return all[from:to], p, nil
}
