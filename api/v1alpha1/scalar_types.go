package v1alpha1

import (
	"fmt"
	"time"
)

// ObjectName is the name of an object in the same namespace.
// Example: "alice-assistant".
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
type ObjectName string

// LabelName is a name of at most 63 lower-case letters, digits and hyphens, as
// Kubernetes uses it for namespaces and Services. Example: "sharedos-system".
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type LabelName string

// Identifier is an opaque name of the protocol. It MUST have 1 to 256 characters
// and no white space at either end. It is compared by equality, never parsed.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self == self.trim()",message="must not begin or end with white space"
type Identifier string

// PathSegment is one step of a resource path. It MUST have 1 to 256 characters,
// MUST NOT contain "/", "\" or a control character, MUST NOT be "." or "..", and
// MUST NOT begin or end with white space. Example: "Work".
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=`^[^/\\\x00-\x1f\x7f]*$`
// +kubebuilder:validation:XValidation:rule="self != '.' && self != '..' && self == self.trim()",message="must not be . or .. and must not begin or end with white space"
type PathSegment string

// Action is what is done to a resource. It MUST have 1 to 128 characters and no
// white space at either end. In a Grant "*" stands for every action; nothing
// else expands. Examples: "read", "grep", "invoke".
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="self == self.trim()",message="must not begin or end with white space"
type Action string

// ActionAny in a Grant stands for every action.
const ActionAny Action = "*"

// Purpose is the one declared reason of a context. It MUST have 1 to 512
// characters and no white space at either end. It is compared by equality.
// Example: "atlas-status".
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="self == self.trim()",message="must not begin or end with white space"
type Purpose string

// ToolName is the canonical name of a tool: 1 to 128 letters, digits, "_", "."
// and "-". Example: "files.read".
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.-]+$`
type ToolName string

// UID is the UID of a Kubernetes object, compared by equality.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
type UID string

// Digest is a SHA-256 in lower-case hexadecimal.
// Example: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".
//
// +kubebuilder:validation:MinLength=64
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
type Digest string

// Timestamp is an RFC 3339 instant with an offset. It is kept exactly as it was
// written, with any fraction of a second. Example: "2026-09-30T17:00:00Z".
//
// +kubebuilder:validation:Format=date-time
// +kubebuilder:validation:MaxLength=64
type Timestamp string

// Time returns the instant, or an error if t is not RFC 3339.
func (t Timestamp) Time() (time.Time, error) {
	parsed, err := time.Parse(time.RFC3339, string(t))
	if err != nil {
		return time.Time{}, fmt.Errorf("parse timestamp %q: %w", string(t), err)
	}
	return parsed, nil
}

// NewTimestamp returns the Timestamp of an instant, in UTC, without losing digits.
func NewTimestamp(t time.Time) Timestamp {
	return Timestamp(t.UTC().Format(time.RFC3339Nano))
}

// JSONText is JSON text held in a string. Numbers inside an object of the
// Kubernetes API may lose digits on their way; text does not. It MUST be one
// valid JSON value; the controller refuses the object otherwise.
// Example: '{"orderId": 9007199254740993}'.
//
// +kubebuilder:validation:MinLength=1
type JSONText string

// LocalReference names an object of a kind that the field says, in the same namespace.
type LocalReference struct {
	// name of the object.
	//
	// +required
	Name ObjectName `json:"name"`
}
