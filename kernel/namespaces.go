package kernel

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/sharedos-dev/operator/kernel/audit"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// ToolNamespaces lists the tool namespaces registered for the context, and which
// of them are enabled. Being enabled is product control and never authority. Its
// error is a [*Refusal].
func (k *Kernel) ToolNamespaces(ctx context.Context, ac contract.AccessContext) (contract.ToolNamespaceCatalog, error) {
	var none contract.ToolNamespaceCatalog
	if ac.Validate() != nil {
		return none, refusal(contract.CodeInvalidContext)
	}
	catalog, err := k.namespaceCatalog(ctx, &ac, ac.EnabledToolNamespaces)
	if err != nil {
		return none, err
	}
	if err := k.Record(ctx, ac, audit.Event{Type: audit.NamespacesListed, Outcome: audit.Succeeded}); err != nil {
		return none, refusal(contract.CodeAuditUnavailable)
	}
	return catalog, nil
}

func (k *Kernel) namespaceCatalog(ctx context.Context, ac *contract.AccessContext, enabled []string) (contract.ToolNamespaceCatalog, error) {
	r := k.registered(ctx, ac)
	if r.cause != "" {
		return contract.ToolNamespaceCatalog{}, refusal(contract.CodeToolCatalogUnavailable)
	}
	byName := make(map[string]*contract.ToolNamespaceEntry)
	catalog := contract.ToolNamespaceCatalog{Namespaces: []contract.ToolNamespaceEntry{}}
	for _, tool := range r.tools {
		d := &tool.Definition
		entry := byName[d.Namespace]
		if entry == nil {
			entry = &contract.ToolNamespaceEntry{Namespace: d.Namespace, Enabled: contains(enabled, d.Namespace)}
			byName[d.Namespace] = entry
		}
		entry.ToolCount++
		if !contains(entry.Sources, d.Source) {
			entry.Sources = append(entry.Sources, d.Source)
		}
	}
	for _, entry := range byName {
		slices.SortFunc(entry.Sources, contract.CompareCodeUnits)
		catalog.Namespaces = append(catalog.Namespaces, *entry)
		catalog.Summary.Total++
		if entry.Enabled {
			catalog.Summary.Enabled++
		} else {
			catalog.Summary.Disabled++
		}
	}
	slices.SortFunc(catalog.Namespaces, func(a, b contract.ToolNamespaceEntry) int {
		return contract.CompareCodeUnits(a.Namespace, b.Namespace)
	})
	if catalog.Validate() != nil {
		return contract.ToolNamespaceCatalog{}, refusal(contract.CodeToolCatalogUnavailable)
	}
	return catalog, nil
}

// UpdateToolNamespaces applies an idempotent patch and returns what took effect,
// which may be less than what was asked for. Its error is a [*Refusal].
func (k *Kernel) UpdateToolNamespaces(ctx context.Context, ac contract.AccessContext, update contract.ToolNamespaceUpdate) (contract.ToolNamespaceCatalog, error) {
	catalog, code := k.updateNamespaces(ctx, ac, update)
	if code == contract.CodeInvalidContext {
		return catalog, refusal(code)
	}
	e := audit.Event{Type: audit.NamespacesUpdated, Outcome: audit.Succeeded, Reason: code}
	if code != "" {
		e.Outcome = audit.Failed
	}
	if update.Validate() == nil {
		if metadata, err := json.Marshal(update); err == nil {
			e.Metadata = metadata
		}
	}
	if err := k.Record(context.WithoutCancel(ctx), ac, e); err != nil {
		code = contract.CodeAuditUnavailable
	}
	if code != "" {
		return contract.ToolNamespaceCatalog{}, refusal(code)
	}
	return catalog, nil
}

func (k *Kernel) updateNamespaces(ctx context.Context, ac contract.AccessContext, update contract.ToolNamespaceUpdate) (contract.ToolNamespaceCatalog, string) {
	var none contract.ToolNamespaceCatalog
	switch {
	case ac.Validate() != nil:
		return none, contract.CodeInvalidContext
	case update.Validate() != nil:
		return none, contract.CodeInvalidRequest
	case k.opts.Namespaces == nil:
		return none, contract.CodeToolNamespacesNotConfigured
	}
	enabled, err := guarded(func() ([]string, error) { return k.opts.Namespaces.UpdateToolNamespaces(ctx, ac, update) })
	if err != nil {
		return none, contract.CodeToolNamespaceUpdateFailed
	}
	// The store may narrow what was asked for. It must not leave enabled what the
	// caller asked to be disabled.
	for _, name := range enabled {
		if contains(update.Disable, name) {
			return none, contract.CodeInvalidToolNamespaceResponse
		}
	}
	catalog, err := k.namespaceCatalog(ctx, &ac, enabled)
	if err != nil {
		return none, contract.CodeToolCatalogUnavailable
	}
	return catalog, ""
}
