package localrun

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/kernel/contract"
	"github.com/sharedos-dev/operator/manifest"
	"github.com/sharedos-dev/operator/snapshot"
	"github.com/sharedos-dev/operator/translate"
)

// scene is everything a turn is made from, before anything runs.
type scene struct {
	snapshot *snapshot.Snapshot
	read     *manifest.Set
	// brokered are the enabled tool namespaces of MCP servers.
	brokered []*v1alpha1.ToolNamespace
	harness  *v1alpha1.Harness // nil when only a command was given
	turn     *v1alpha1.Turn
	parties  translate.Parties
	at       time.Time
}

// set reads the manifests and resolves who takes part, as the Turn controller does.
func set(o *Options) (*scene, error) {
	read, err := manifest.Read(o.Paths, manifest.Options{Namespace: o.Namespace, Material: true})
	if err != nil {
		return nil, fmt.Errorf("the manifests are at fault:\n%w", err)
	}
	if err := o.readdress(read.Objects); err != nil {
		return nil, err
	}
	s := &scene{snapshot: snapshot.New(read.Objects...), read: read, at: o.Clock().UTC().Truncate(time.Microsecond)}
	if err := s.findHarness(o); err != nil {
		return nil, err
	}
	directory := translate.NewDirectory(s.snapshot.Principals(o.Namespace))
	if err := s.party(o, directory); err != nil {
		return nil, err
	}
	s.turn = &v1alpha1.Turn{
		ObjectMeta: metav1.ObjectMeta{
			Name: "local", Namespace: o.Namespace, UID: types.UID(o.NewID()), CreationTimestamp: metav1.NewTime(s.at),
		},
		Spec: v1alpha1.TurnSpec{
			Principal: v1alpha1.ObjectName(o.Principal), Purpose: v1alpha1.Purpose(s.parties.Purpose),
			Harness: v1alpha1.ObjectName(o.Harness), Message: v1alpha1.TurnMessage{From: v1alpha1.ObjectName(o.From), Text: o.Message},
			Options: limits(o),
		},
	}
	s.parties.Options = translate.Options(s.turn, s.harness)
	return s, nil
}

// request is what the kernel gets of the turn.
func (s *scene) request() (contract.ExecutionRequest, error) {
	request, err := translate.Request(s.turn, s.parties, s.at)
	if err != nil {
		return request, err
	}
	return request, request.Validate()
}

func (s *scene) findHarness(o *Options) error {
	if o.Harness == "" {
		return nil
	}
	list := s.snapshot.Harnesses(o.Namespace)
	for i := range list {
		if list[i].Name == o.Harness {
			s.harness = &list[i]
			return nil
		}
	}
	return fmt.Errorf("there is no Harness %q in namespace %q of these manifests", o.Harness, o.Namespace)
}

func (s *scene) party(o *Options, d *translate.Directory) error {
	var err error
	p := &s.parties
	if p.Identity, err = d.Identity(o.Principal); err != nil {
		return fmt.Errorf("%w in namespace %q of these manifests", err, o.Namespace)
	}
	if p.Actor.Kind != contract.KindAgent {
		return fmt.Errorf("principal %q is a %s; only an agent runs turns", o.Principal, p.Actor.Kind)
	}
	if p.Purpose, err = p.Identity.Purpose(v1alpha1.Purpose(o.Purpose)); err != nil {
		return err
	}
	p.Sender = p.Actor
	if o.From != "" {
		if p.Sender, err = d.Address(o.From); err != nil {
			return err
		}
	}
	return s.enable(o)
}

// enable chooses the tool namespaces: those that are on for the Principal, unless
// they are left out or nothing here serves them.
func (s *scene) enable(o *Options) error {
	namespaces := s.snapshot.ToolNamespaces(o.Namespace)
	enabled, err := translate.EnabledToolNamespaces(namespaces, s.parties.Principal)
	if err != nil {
		return err
	}
	for _, name := range o.Without {
		if !slices.ContainsFunc(namespaces, func(n v1alpha1.ToolNamespace) bool { return n.Name == name }) {
			return fmt.Errorf("without: there is no ToolNamespace %q in namespace %q of these manifests", name, o.Namespace)
		}
	}
	s.parties.Enabled = []string{}
	for i := range namespaces {
		n := &namespaces[i]
		id := translate.ToolNamespaceID(n)
		if !slices.Contains(enabled, id) || translate.Reserved(n) || slices.Contains(o.Without, n.Name) {
			continue
		}
		switch source := &n.Spec.Source; {
		case source.MCP != nil && source.MCP.URL == "":
			return fmt.Errorf("tool namespace %q: %w; say with --upstream %s=URL where it is, or leave it out with --without %s",
				n.Name, ErrService, n.Name, n.Name)
		case source.MCP != nil:
			s.brokered = append(s.brokered, n)
		case source.Provider != nil && o.folder(source.Provider.Plane) == "":
			fmt.Fprintf(o.Progress, "tools of %s are left out: no folder was given for them\n", n.Name)
			continue
		}
		s.parties.Enabled = append(s.parties.Enabled, id)
	}
	return nil
}

// folder is what serves a plane here.
func (o *Options) folder(plane v1alpha1.ResourcePlane) string {
	switch plane {
	case v1alpha1.PlaneFiles:
		return o.Files
	case v1alpha1.PlaneRepo:
		return o.Repo
	default:
		return ""
	}
}

func limits(o *Options) *v1alpha1.ExecutionOptions {
	out := &v1alpha1.ExecutionOptions{}
	if o.Timeout > 0 {
		out.TimeoutMs = new(o.Timeout.Milliseconds())
	}
	if o.MaxToolCalls > 0 {
		out.MaxToolCalls = new(o.MaxToolCalls)
	}
	return out
}
