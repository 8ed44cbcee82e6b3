package plugin

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedos-dev/operator/api/v1alpha1"
	"github.com/sharedos-dev/operator/plugin/internal/command"
)

// completionPatience bounds how long a shell waits.
const completionPatience = 3 * time.Second

type completer = command.Completer

func complete(cmd *cobra.Command, flag string, f completer) { command.Complete(cmd, flag, f) }

func fixed(values ...string) completer { return command.Fixed(values...) }

// names completes with the names of a list, of those objects that keep says.
func (e *env) names(list client.ObjectList, keep func(client.Object) bool) []string {
	c, namespace, err := e.world()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil
	}
	var names []string
	for _, object := range objectsOf(list) {
		if keep == nil || keep(object) {
			names = append(names, object.GetName())
		}
	}
	slices.Sort(names)
	return names
}

func objectsOf(list client.ObjectList) []client.Object {
	var out []client.Object
	switch list := list.(type) {
	case *v1alpha1.PrincipalList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *v1alpha1.GrantList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *v1alpha1.HarnessList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *v1alpha1.TurnList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *corev1.NamespaceList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out
}

func (e *env) completePrincipals(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return e.names(&v1alpha1.PrincipalList{}, nil), cobra.ShellCompDirectiveNoFileComp
}

func (e *env) completeHarnesses(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return e.names(&v1alpha1.HarnessList{}, nil), cobra.ShellCompDirectiveNoFileComp
}

func (e *env) completeGrants(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return e.names(&v1alpha1.GrantList{}, nil), cobra.ShellCompDirectiveNoFileComp
}

// completeTurns completes the first argument with Turns that keep says.
func (e *env) completeTurns(keep func(*v1alpha1.Turn) bool) completer {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return e.names(&v1alpha1.TurnList{}, func(o client.Object) bool {
			turn, ok := o.(*v1alpha1.Turn)
			return ok && (keep == nil || keep(turn))
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// first completes only the first argument.
func first(f completer) completer {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, prefix)
	}
}

// completePurposes completes with the purposes of the Principal that a flag names.
func (e *env) completePurposes(principal func() string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var list v1alpha1.PrincipalList
		if e.names(&list, nil) == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for i := range list.Items {
			if list.Items[i].Name == principal() {
				for _, purpose := range list.Items[i].Spec.Purposes {
					out = append(out, string(purpose))
				}
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func (e *env) completeNamespaces(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	c, err := e.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	var list corev1.NamespaceList
	if err := c.List(ctx, &list); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, object := range objectsOf(&list) {
		names = append(names, object.GetName())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (e *env) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	config, err := e.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}
