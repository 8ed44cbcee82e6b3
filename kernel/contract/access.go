package contract

// AddressKind says which kind of party an [Address] names.
type AddressKind string

// The four kinds of address.
const (
	KindHuman   AddressKind = "human"
	KindAgent   AddressKind = "agent"
	KindGroup   AddressKind = "group"
	KindService AddressKind = "service"
)

// Address names one party. On the wire it is a tagged union whose id field
// depends on the kind (userId, agentId, conversationId, serviceId). It is
// comparable: two addresses are equal only if both fields are.
type Address struct {
	Kind AddressKind
	ID   string
}

// Path locates a resource inside its plane, segment by segment; an empty path
// is the root. It is never joined into a string for a comparison.
type Path []string

// ResourceRef names one resource. Without an Owner it belongs to whoever owns
// the context it is used in.
type ResourceRef struct {
	Namespace string   `json:"namespace"`
	Path      Path     `json:"path"`
	Owner     *Address `json:"owner,omitempty"`
}

// CapabilityRequirement is what one operation needs.
type CapabilityRequirement struct {
	Resource ResourceRef `json:"resource"`
	Action   string      `json:"action"`
}

// Scope says how far below its path a capability reaches.
type Scope string

// The two scopes.
const (
	ScopeExact       Scope = "exact"
	ScopeDescendants Scope = "descendants"
)

// ActionAny in a grant's capability stands for every action; nothing else expands.
const ActionAny = "*"

// Capability is one thing a grant allows.
type Capability struct {
	Resource ResourceRef `json:"resource"`
	Actions  []string    `json:"actions"`
	Scope    Scope       `json:"scope"`
}

// Constraints bound a grant. An absent field does not constrain.
type Constraints struct {
	Purposes        []string   `json:"purposes,omitempty"`
	NotBefore       *Timestamp `json:"notBefore,omitempty"`
	ExpiresAt       *Timestamp `json:"expiresAt,omitempty"`
	MaxUses         *int64     `json:"maxUses,omitempty"`
	DelegationDepth *int64     `json:"delegationDepth,omitempty"`
}

// Grant is authority: what Subject may do with Issuer's authority.
type Grant struct {
	ID            string       `json:"id"`
	NamespaceID   string       `json:"namespaceId"`
	Subject       Address      `json:"subject"`
	Issuer        Address      `json:"issuer"`
	Capabilities  []Capability `json:"capabilities"`
	Constraints   Constraints  `json:"constraints"`
	IssuedAt      Timestamp    `json:"issuedAt"`
	RevokedAt     *Timestamp   `json:"revokedAt,omitempty"`
	ParentGrantID string       `json:"parentGrantId,omitempty"`
	Metadata      Object       `json:"metadata,omitempty"`
}

// AccessContext is identity and time: who acts, with whose authority, on whose
// resources, for which purpose. It never holds grants.
type AccessContext struct {
	NamespaceID           string    `json:"namespaceId"`
	Actor                 Address   `json:"actor"`
	Authority             Address   `json:"authority"`
	Owner                 Address   `json:"owner"`
	Purpose               string    `json:"purpose"`
	TraceID               string    `json:"traceId"`
	EnabledToolNamespaces []string  `json:"enabledToolNamespaces"`
	Now                   Timestamp `json:"now"`
}

// AuthorizationDecision is the one answer a caller gets.
type AuthorizationDecision struct {
	Allowed           bool               `json:"allowed"`
	ReasonCode        string             `json:"reasonCode"`
	MatchedGrantID    string             `json:"matchedGrantId,omitempty"`
	RequiredAuthority *CapabilityRequest `json:"requiredAuthority,omitempty"`
	Metadata          Object             `json:"metadata,omitempty"`
}

// CapabilityRequest describes authority that would have sufficed. It is never
// authority itself. ID is derived from everything but RequestedAt.
type CapabilityRequest struct {
	ID           string       `json:"id"`
	NamespaceID  string       `json:"namespaceId"`
	Requester    Address      `json:"requester"`
	Owner        Address      `json:"owner"`
	Capabilities []Capability `json:"capabilities"`
	Purpose      string       `json:"purpose"`
	Constraints  *Constraints `json:"constraints,omitempty"`
	RequestedAt  Timestamp    `json:"requestedAt"`
	Metadata     Object       `json:"metadata,omitempty"`
}

// ReachEntry is one place a context may touch, with the authority stripped.
type ReachEntry struct {
	Namespace string   `json:"namespace"`
	Path      Path     `json:"path"`
	Actions   []string `json:"actions"`
	Scope     Scope    `json:"scope"`
}

// ReachResult is either the whole reach or the reason it cannot be computed.
type ReachResult struct {
	Status     string       `json:"status"` // "computed" or "unavailable"
	Reach      []ReachEntry `json:"reach,omitzero"`
	ReasonCode string       `json:"reasonCode,omitempty"`
}
