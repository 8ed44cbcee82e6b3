package contract

import (
	"encoding/json"
	"fmt"

	"github.com/sharedos-dev/operator/kernel/canonical"
)

// addressIDFields maps each kind to the JSON name of its id.
var addressIDFields = map[AddressKind]string{
	KindHuman:   "userId",
	KindAgent:   "agentId",
	KindGroup:   "conversationId",
	KindService: "serviceId",
}

// Agent returns an agent's address.
func Agent(id string) Address { return Address{KindAgent, id} }

// Human returns a human's address.
func Human(id string) Address { return Address{KindHuman, id} }

// CanonicalActor is the label "<kind>:<id>", for equality only; it is never parsed back.
func CanonicalActor(a Address) string { return string(a.Kind) + ":" + a.ID }

// AddressPath is the resource path [kind, id] of an address.
func AddressPath(a Address) Path { return Path{string(a.Kind), a.ID} }

// AppendCanonical appends the address's canonical JSON. It assumes a valid address.
func (a Address) AppendCanonical(dst []byte) []byte {
	before, after := `{"kind":"service","serviceId":`, `}`
	switch a.Kind {
	case KindAgent:
		before, after = `{"agentId":`, `,"kind":"agent"}`
	case KindGroup:
		before, after = `{"conversationId":`, `,"kind":"group"}`
	case KindHuman:
		before = `{"kind":"human","userId":`
	case KindService:
	}
	dst = canonical.AppendString(append(dst, before...), a.ID)
	return append(dst, after...)
}

// MarshalJSON implements [json.Marshaler].
func (a Address) MarshalJSON() ([]byte, error) {
	field, ok := addressIDFields[a.Kind]
	if !ok {
		return nil, fmt.Errorf("address kind %q is not one of human, agent, group, service", a.Kind)
	}
	return json.Marshal(map[string]string{"kind": string(a.Kind), field: a.ID})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (a *Address) UnmarshalJSON(data []byte) error {
	var fields map[string]string
	if err := json.Unmarshal(data, &fields); err != nil {
		return fmt.Errorf("address must be an object of strings: %w", err)
	}
	kind := AddressKind(fields["kind"])
	field, ok := addressIDFields[kind]
	if !ok {
		return fmt.Errorf("address kind %q is not one of human, agent, group, service", kind)
	}
	id, ok := fields[field]
	if !ok || len(fields) != 2 {
		return fmt.Errorf("address of kind %q must have exactly kind and %s", kind, field)
	}
	*a = Address{kind, id}
	return nil
}
