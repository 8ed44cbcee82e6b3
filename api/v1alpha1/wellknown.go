package v1alpha1

// The verbs on principals that Kubernetes RBAC grants beside the usual ones.
const (
	// VerbIssue on a Principal allows creating and editing a Grant whose issuer
	// is that Principal.
	VerbIssue = "issue"

	// VerbUse on a Principal allows creating a Turn as that Principal, and
	// calling the HTTP API as it from another namespace.
	VerbUse = "use"
)

// Labels, annotations and finalizers that users may meet.
const (
	// LabelTurn on a pod names the Turn that the pod runs. It asks for the
	// sidecar to be injected; it grants nothing.
	LabelTurn = "sharedos.dev/turn"

	// AnnotationExecutionID on a pod is the execution id of its turn.
	AnnotationExecutionID = "sharedos.dev/execution-id"

	// AnnotationCatalogHash on a pod is the hash of its turn's catalogue.
	AnnotationCatalogHash = "sharedos.dev/catalog-hash"

	// AnnotationInjectedBy on a pod names the version that injected the sidecar.
	AnnotationInjectedBy = "sharedos.dev/injected-by"

	// AnnotationBridgePort on a pod moves the bridge to another port of the pod's
	// loopback, 1024 to 65535.
	AnnotationBridgePort = "sharedos.dev/bridge-port"

	// LabelOrigin on a Turn says what the manager made it for: [OriginHTTP] or
	// [OriginMessage]. Other Turns do not have it.
	LabelOrigin = "sharedos.dev/origin"

	// FinalizerTurn is held on a Turn only while it runs, so that deleting it
	// ends the run and records the ending first.
	FinalizerTurn = "sharedos.dev/turn"
)

// Values of [LabelOrigin].
const (
	// OriginHTTP means POST /v1/turns.
	OriginHTTP = "http"

	// OriginMessage means a message to the agent.
	OriginMessage = "message"
)

// ConfigMapCA is the ConfigMap, in every namespace with a Principal, that holds the
// certificate authority of the HTTP API under the key [KeyCA].
const ConfigMapCA = "sharedos-ca"

// KeyCA is the key of the PEM bundle in [ConfigMapCA].
const KeyCA = "ca.crt"

// Names of containers in a harness pod.
const (
	// ContainerHarness is the container whose command is the agent. Its exit
	// code is the outcome of a turn whose pod was brought by someone else.
	ContainerHarness = "harness"

	// ContainerBridge is the injected sidecar. No other container may have its name.
	ContainerBridge = "sharedos-bridge"
)

// Names of the volumes that the webhook adds to a harness pod.
const (
	// VolumeShared holds the message, the connection file and the wrapper. Every
	// container but the sidecar mounts it read-only.
	VolumeShared = "sharedos"

	// VolumeKernelToken holds the pod-bound token. Only the sidecar mounts it.
	VolumeKernelToken = "sharedos-kernel-token"
)

// Audiences of ServiceAccount tokens.
const (
	// AudienceKernel is the audience of the pod-bound token that the sidecar
	// attaches with. Only the sidecar may hold such a token.
	AudienceKernel = "sharedos-kernel"

	// AudienceAPI is the audience of tokens that call the HTTP API.
	AudienceAPI = "sharedos"
)
