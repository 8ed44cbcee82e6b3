package contract

import (
	"slices"

	"github.com/sharedos-dev/operator/kernel/strictjson"
)

// Validate implements [Validator].
func (a Address) Validate() error {
	var c checks
	field, ok := addressIDFields[a.Kind]
	if !ok {
		c.fail("kind", RuleValue, "must be human, agent, group or service")
		return c.result()
	}
	c.identifier(field, a.ID)
	return c.result()
}

// Validate implements [Validator].
func (p Path) Validate() error {
	var c checks
	c.items("", len(p), 0, MaxPathSegments)
	for i, s := range p {
		if c.err != nil {
			break
		}
		if err := ValidateSegment(s); err != nil {
			c.nested(strictjson.Index(i), err)
		}
	}
	return c.result()
}

// ValidateSegment checks one path segment: 1 to 256 code points, no white space
// at either end, not "." or "..", and none of / \ U+0000-U+001F U+007F.
func ValidateSegment(s string) error {
	if plainSegment(s) {
		return nil
	}
	var c checks
	c.text("", s, MaxSegment)
	if s == "." || s == ".." {
		c.fail("", RulePattern, "must not be . or ..")
	}
	for i := range len(s) {
		if b := s[i]; b < 0x20 || b == 0x7f || b == '/' || b == '\\' {
			c.fail("", RulePattern, "must not hold a separator or a control character")
		}
	}
	return c.result()
}

// plainSegment recognises in one pass what nearly every segment is: printable ASCII
// that breaks no rule. A decision validates every segment it is asked about.
func plainSegment(s string) bool {
	if s == "" || len(s) > MaxSegment || s[0] == ' ' || s[len(s)-1] == ' ' || s[0] == '.' {
		return false
	}
	for i := range len(s) {
		if b := s[i]; b < 0x20 || b >= 0x7f || b == '/' || b == '\\' {
			return false
		}
	}
	return true
}

// Validate implements [Validator].
func (r ResourceRef) Validate() error {
	var c checks
	c.identifier("namespace", r.Namespace)
	c.nested("path", r.Path.Validate())
	if r.Owner != nil {
		c.nested("owner", r.Owner.Validate())
	}
	return c.result()
}

// Validate implements [Validator].
func (r CapabilityRequirement) Validate() error {
	var c checks
	c.nested("resource", r.Resource.Validate())
	c.text("action", r.Action, MaxAction)
	return c.result()
}

// Validate implements [Validator].
func (k Capability) Validate() error {
	var c checks
	c.nested("resource", k.Resource.Validate())
	c.texts("actions", k.Actions, 1, MaxListEntries, MaxAction)
	if k.Scope != ScopeExact && k.Scope != ScopeDescendants {
		c.fail("scope", RuleValue, "must be exact or descendants")
	}
	return c.result()
}

// Validate implements [Validator].
func (k Constraints) Validate() error {
	var c checks
	if k.Purposes != nil {
		c.texts("purposes", k.Purposes, 1, MaxListEntries, MaxPurpose)
	}
	if k.NotBefore != nil && k.ExpiresAt != nil && k.NotBefore.After(k.ExpiresAt.Time) {
		c.fail("notBefore", RuleOrder, "must not be after expiresAt")
	}
	if k.MaxUses != nil && (*k.MaxUses < 1 || *k.MaxUses > MaxSafeInteger) {
		c.fail("maxUses", RuleValue, "must be a positive integer")
	}
	if k.DelegationDepth != nil && (*k.DelegationDepth < 0 || *k.DelegationDepth > MaxSafeInteger) {
		c.fail("delegationDepth", RuleValue, "must be zero or a positive integer")
	}
	return c.result()
}

// Validate implements [Validator].
func (g Grant) Validate() error {
	var c checks
	c.identifier("id", g.ID)
	c.identifier("namespaceId", g.NamespaceID)
	c.nested("subject", g.Subject.Validate())
	c.nested("issuer", g.Issuer.Validate())
	c.capabilities(g.Capabilities)
	c.nested("constraints", g.Constraints.Validate())
	c.instant("issuedAt", g.IssuedAt)
	c.optionalIdentifier("parentGrantId", g.ParentGrantID)
	if g.ParentGrantID != "" && g.ParentGrantID == g.ID {
		c.fail("parentGrantId", RuleValue, "must not name the grant itself")
	}
	c.object("metadata", g.Metadata, false)
	return c.result()
}

func (c *checks) capabilities(list []Capability) {
	c.items("capabilities", len(list), 1, MaxListEntries)
	for i := range list {
		if c.err != nil {
			return
		}
		if err := list[i].Validate(); err != nil {
			c.nested("capabilities"+strictjson.Index(i), err)
		}
	}
}

// Validate implements [Validator].
func (a AccessContext) Validate() error {
	var c checks
	c.identifier("namespaceId", a.NamespaceID)
	c.nested("actor", a.Actor.Validate())
	c.nested("authority", a.Authority.Validate())
	c.nested("owner", a.Owner.Validate())
	c.text("purpose", a.Purpose, MaxPurpose)
	c.identifier("traceId", a.TraceID)
	c.uniqueTexts("enabledToolNamespaces", a.EnabledToolNamespaces, 0, MaxNamespaces)
	c.instant("now", a.Now)
	return c.result()
}

// Validate implements [Validator].
func (d AuthorizationDecision) Validate() error {
	var c checks
	c.text("reasonCode", d.ReasonCode, MaxCode)
	c.optionalIdentifier("matchedGrantId", d.MatchedGrantID)
	if d.RequiredAuthority != nil {
		c.nested("requiredAuthority", d.RequiredAuthority.Validate())
	}
	c.object("metadata", d.Metadata, false)
	return c.result()
}

// Validate implements [Validator].
func (r CapabilityRequest) Validate() error {
	var c checks
	c.identifier("id", r.ID)
	c.identifier("namespaceId", r.NamespaceID)
	c.nested("requester", r.Requester.Validate())
	c.nested("owner", r.Owner.Validate())
	c.capabilities(r.Capabilities)
	c.text("purpose", r.Purpose, MaxPurpose)
	if r.Constraints != nil {
		c.nested("constraints", r.Constraints.Validate())
	}
	c.instant("requestedAt", r.RequestedAt)
	c.object("metadata", r.Metadata, false)
	return c.result()
}

// Validate implements [Validator].
func (r ReachResult) Validate() error {
	var c checks
	switch {
	case r.Status == "computed" && r.ReasonCode == "":
		c.items("reach", len(r.Reach), 0, MaxReach)
	case r.Status == "unavailable" && r.Reach == nil:
		if !slices.Contains([]string{CodeAuthorityUnavailable, CodeUsageStoreUnavailable}, r.ReasonCode) {
			c.fail("reasonCode", RuleValue, "must be authority_unavailable or usage_store_unavailable")
		}
	default:
		c.fail("status", RuleValue, "must be computed with a reach or unavailable with a reasonCode")
	}
	for i := range r.Reach {
		if c.err != nil {
			break
		}
		if err := r.Reach[i].Validate(); err != nil {
			c.nested("reach"+strictjson.Index(i), err)
		}
	}
	return c.result()
}

// Validate implements [Validator].
func (r ReachEntry) Validate() error {
	return Capability{
		Resource: ResourceRef{Namespace: r.Namespace, Path: r.Path},
		Actions:  r.Actions, Scope: r.Scope,
	}.Validate()
}
