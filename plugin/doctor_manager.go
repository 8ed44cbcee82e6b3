package plugin

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The labels of the installation's objects.
const (
	labelComponent = "app.kubernetes.io/component"
	labelVersion   = "app.kubernetes.io/version"
)

// release is how the objects of the installation begin that has no override.
const release = "sharedos"

// manager looks at the manager's replicas and its version, and remembers it: it says
// what the other parts are called.
func (p *patient) manager(ctx context.Context) {
	const check = "manager"
	p.base = release
	var list appsv1.StatefulSetList
	err := p.client.List(ctx, &list, client.InNamespace(p.system), client.MatchingLabels{labelComponent: "manager"})
	if err != nil {
		p.failed(check, err, "kubectl -n "+p.system+" get statefulsets")
		return
	}
	if len(list.Items) == 0 {
		p.say(check, stateFault, "there is none in namespace "+p.system, "install the chart, or say where it is with --system-namespace")
		return
	}
	p.installed = &list.Items[0]
	p.base = strings.TrimSuffix(p.installed.Name, "-manager")
	for i := range list.Items {
		set := &list.Items[i]
		want := int32(1)
		if set.Spec.Replicas != nil {
			want = *set.Spec.Replicas
		}
		if set.Status.ReadyReplicas < want || want == 0 {
			p.say(check, stateFault, fmt.Sprintf("%d of %d replicas of %s are ready", set.Status.ReadyReplicas, want, set.Name),
				"kubectl -n "+p.system+" describe pods -l "+labelComponent+"=manager")
		} else {
			p.ok(check, "%d of %d replicas of %s are ready", set.Status.ReadyReplicas, want, set.Name)
		}
		p.versions(set.Labels[labelVersion])
	}
}

func (p *patient) versions(installed string) {
	mine := version()
	switch {
	case installed != "" && strings.TrimPrefix(installed, "v") == strings.TrimPrefix(mine, "v"):
		p.ok("version", "%s", installed)
	case installed == "" || mine == "dev":
		p.say("version", stateUnknown, fmt.Sprintf("installed %q, plugin %q", installed, mine), "use a plugin that was built with its version: make plugin")
	default:
		p.say("version", stateWarning, fmt.Sprintf("installed %s, plugin %s", installed, mine), "use the plugin of the installed version")
	}
}

// flag is what the manager was started with, or the default.
func (p *patient) flag(name, standard string) string {
	value, _ := p.given(name)
	return cmp.Or(value, standard)
}

// given is the value of a flag of the manager, and whether it has it.
func (p *patient) given(name string) (string, bool) {
	if p.installed == nil {
		return "", false
	}
	for i := range p.installed.Spec.Template.Spec.Containers {
		for _, arg := range p.installed.Spec.Template.Spec.Containers[i].Args {
			if key, value, _ := strings.Cut(arg, "="); key == "--"+name {
				return value, true
			}
		}
	}
	return "", false
}

// managerLog is the command that shows what the manager says.
func (p *patient) managerLog() string {
	return "kubectl -n " + p.system + " logs -l " + labelComponent + "=manager"
}
