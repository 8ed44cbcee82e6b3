package policytest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/kernel/strictjson"
	"github.com/sharedos-dev/operator/manifest"
	"github.com/sharedos-dev/operator/snapshot"
)

// file is a document of kind AuthorizationTest as it is written.
type file struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type spec struct {
	At    *contract.Timestamp `json:"at,omitempty"`
	Cases []fileCase          `json:"cases"`
}

type fileCase struct {
	Name      string              `json:"name"`
	Principal string              `json:"principal"`
	Purpose   string              `json:"purpose,omitempty"`
	At        *contract.Timestamp `json:"at,omitempty"`
	Uses      map[string]int64    `json:"uses,omitempty"`

	Action   string `json:"action,omitempty"`
	Resource string `json:"resource,omitempty"`
	Expect   string `json:"expect,omitempty"`
	Grant    string `json:"grant,omitempty"`
	Reason   string `json:"reason,omitempty"`

	Tools *[]string    `json:"tools,omitempty"`
	Reach *[]filePlace `json:"reach,omitempty"`
}

type filePlace struct {
	Place   string   `json:"place"`
	Actions []string `json:"actions"`
}

// Suite is one file of cases.
type Suite struct {
	manifest.Position
	Name      string
	Namespace string
	Cases     []Case
}

// Case is one question with the answer that is expected.
type Case struct {
	manifest.Position
	Name      string
	Principal string
	Purpose   string
	// At is when it is asked; zero means when the test runs.
	At time.Time
	// Uses are how many uses of bounded Grants are spent, by name.
	Uses map[string]int64

	// Exactly one of Need, Tools and Reach is set.
	Need  *contract.CapabilityRequirement
	Tools []string
	Reach []string

	// Allowed, Grant and Reason are what is expected of Need. An empty Grant or Reason
	// is not compared.
	Allowed bool
	Grant   string
	Reason  string
}

// Verdicts that a case may expect.
const (
	verdictAllowed = "allowed"
	verdictDenied  = "denied"
)

// parse reads one document. Faults name the line.
func parse(d *manifest.Document, namespace string) (*Suite, manifest.Faults) {
	var f file
	if err := strictjson.Unmarshal(d.JSON, &f, strictjson.Options{}); err != nil {
		return nil, manifest.Faults{faultOf(d, err)}
	}
	s := &Suite{Position: d.Position, Name: f.Metadata.Name, Namespace: f.Metadata.Namespace}
	if s.Namespace == "" {
		s.Namespace = namespace
	}
	var faults manifest.Faults
	if len(f.Spec.Cases) == 0 {
		faults = append(faults, manifest.Fault{Position: d.At("spec.cases"), Message: "spec.cases: must have at least one case"})
	}
	names := map[string]bool{}
	for i := range f.Spec.Cases {
		path := fmt.Sprintf("spec.cases[%d]", i)
		c, field, err := f.Spec.Cases[i].build(f.Spec.At)
		if err == nil && names[c.Name] {
			field, err = "name", fmt.Errorf("another case is called %q", c.Name)
		}
		if err != nil {
			at := strictjson.Join(path, field)
			faults = append(faults, manifest.Fault{Position: d.At(at), Message: at + ": " + err.Error()})
			continue
		}
		names[c.Name] = true
		c.Position = d.At(path)
		s.Cases = append(s.Cases, c)
	}
	return s, faults
}

// faultOf finds the line of a decoding error.
func faultOf(d *manifest.Document, err error) manifest.Fault {
	at := d.Position
	if strict, ok := errors.AsType[*strictjson.Error](err); ok {
		at = d.At(strict.Path)
	}
	return manifest.Fault{Position: at, Message: err.Error()}
}

// build checks a case; its error comes with the field at fault.
func (f *fileCase) build(at *contract.Timestamp) (c Case, field string, err error) {
	c = Case{Name: f.Name, Principal: f.Principal, Purpose: f.Purpose, Uses: f.Uses, Grant: f.Grant, Reason: f.Reason}
	if f.At != nil {
		at = f.At
	}
	if at != nil {
		c.At = at.Time
	}
	questions := 0
	for _, asked := range []bool{f.Action != "" || f.Resource != "", f.Tools != nil, f.Reach != nil} {
		if asked {
			questions++
		}
	}
	switch {
	case f.Name == "":
		return c, "name", errors.New("must be set")
	case f.Principal == "":
		return c, "principal", errors.New("must be set")
	case questions != 1:
		return c, "", errors.New("ask exactly one thing: action with resource, or tools, or reach")
	case f.Tools != nil:
		c.Tools = append([]string{}, *f.Tools...)
		slices.Sort(c.Tools)
		return f.withoutVerdict(c)
	case f.Reach != nil:
		if c.Reach, err = places(*f.Reach); err != nil {
			return c, "reach", err
		}
		return f.withoutVerdict(c)
	default:
		return f.buildNeed(c)
	}
}

func (f *fileCase) buildNeed(c Case) (Case, string, error) {
	resource, err := snapshot.ParseResource(f.Resource)
	if err != nil {
		return c, "resource", err
	}
	c.Need = &contract.CapabilityRequirement{Resource: resource, Action: f.Action}
	if err := c.Need.Validate(); err != nil {
		return c, "action", err
	}
	switch {
	case f.Expect != verdictAllowed && f.Expect != verdictDenied:
		return c, "expect", fmt.Errorf("must be %s or %s", verdictAllowed, verdictDenied)
	case f.Expect == verdictAllowed && f.Reason != "":
		return c, "reason", errors.New("goes with expect: denied")
	case f.Expect == verdictDenied && f.Grant != "":
		return c, "grant", errors.New("goes with expect: allowed")
	}
	c.Allowed = f.Expect == verdictAllowed
	return c, "", nil
}

// withoutVerdict refuses what belongs to a question of action and resource.
func (f *fileCase) withoutVerdict(c Case) (Case, string, error) {
	for field, value := range map[string]string{"expect": f.Expect, "grant": f.Grant} {
		if value != "" {
			return c, field, errors.New("goes with action and resource")
		}
	}
	return c, "", nil
}

// places writes what is expected of a reach in one form.
func places(in []filePlace) ([]string, error) {
	out := make([]string, 0, len(in))
	for i := range in {
		ref, scope, err := snapshot.ParsePlace(in[i].Place)
		if err != nil {
			return nil, err
		}
		out = append(out, formatPlace(ref.Namespace, ref.Path, scope, in[i].Actions))
	}
	slices.Sort(out)
	return out, nil
}
