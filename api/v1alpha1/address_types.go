package v1alpha1

// AddressKind says which kind of party an Address names.
//
// +kubebuilder:validation:Enum=human;agent;group;service
type AddressKind string

// The kinds of address.
const (
	// AddressHuman is a person, named by userId.
	AddressHuman AddressKind = "human"
	// AddressAgent is an agent, named by agentId.
	AddressAgent AddressKind = "agent"
	// AddressGroup is a conversation of several parties, named by conversationId.
	AddressGroup AddressKind = "group"
	// AddressService is a program that is no agent, named by serviceId.
	AddressService AddressKind = "service"
)

// Address names one party. It is a tagged union: exactly the id that belongs to
// its kind is set. Two addresses are equal only if every field is equal.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'human') == has(self.userId)",message="userId must be set exactly when kind is human"
// +kubebuilder:validation:XValidation:rule="(self.kind == 'agent') == has(self.agentId)",message="agentId must be set exactly when kind is agent"
// +kubebuilder:validation:XValidation:rule="(self.kind == 'group') == has(self.conversationId)",message="conversationId must be set exactly when kind is group"
// +kubebuilder:validation:XValidation:rule="(self.kind == 'service') == has(self.serviceId)",message="serviceId must be set exactly when kind is service"
type Address struct {
	// kind of party. MUST be human, agent, group or service.
	//
	// +required
	Kind AddressKind `json:"kind"`

	// userId of a human. MUST be set exactly when kind is human.
	// Example: "alice".
	//
	// +optional
	UserID Identifier `json:"userId,omitempty"`

	// agentId of an agent. MUST be set exactly when kind is agent.
	// Example: "alice-assistant".
	//
	// +optional
	AgentID Identifier `json:"agentId,omitempty"`

	// conversationId of a group. MUST be set exactly when kind is group.
	// Example: "atlas-launch".
	//
	// +optional
	ConversationID Identifier `json:"conversationId,omitempty"`

	// serviceId of a service. MUST be set exactly when kind is service.
	// Example: "nightly-report".
	//
	// +optional
	ServiceID Identifier `json:"serviceId,omitempty"`
}

// ID returns the id that belongs to the address's kind. It is empty for an
// unknown kind, whatever else is set.
func (a *Address) ID() string {
	switch a.Kind {
	case AddressHuman:
		return string(a.UserID)
	case AddressAgent:
		return string(a.AgentID)
	case AddressGroup:
		return string(a.ConversationID)
	case AddressService:
		return string(a.ServiceID)
	default:
		return ""
	}
}

// NewAddress returns the address of a kind and an id. An unknown kind yields an
// address without an id, which no rule accepts.
func NewAddress(kind AddressKind, id string) Address {
	address := Address{Kind: kind}
	switch kind {
	case AddressHuman:
		address.UserID = Identifier(id)
	case AddressAgent:
		address.AgentID = Identifier(id)
	case AddressGroup:
		address.ConversationID = Identifier(id)
	case AddressService:
		address.ServiceID = Identifier(id)
	}
	return address
}
