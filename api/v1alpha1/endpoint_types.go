package v1alpha1

// URLScheme is how a Service is spoken to.
//
// +kubebuilder:validation:Enum=https;http
type URLScheme string

// The schemes.
const (
	// SchemeHTTPS is HTTP over TLS.
	SchemeHTTPS URLScheme = "https"
	// SchemeHTTP is HTTP in clear text, for servers that offer nothing else.
	SchemeHTTP URLScheme = "http"
)

// ServiceReference names one port of a Kubernetes Service.
type ServiceReference struct {
	// name of the Service. Example: "sharedos-files-provider".
	//
	// +required
	Name LabelName `json:"name"`

	// namespace of the Service. Absent means the namespace of the object.
	// Example: "sharedos-system".
	//
	// +optional
	Namespace LabelName `json:"namespace,omitempty"`

	// port of the Service. Example: 8443.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// path of the endpoint. It MUST begin with "/". Absent means "/".
	// Example: "/mcp".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/[^\s?#]*$`
	Path string `json:"path,omitempty"`

	// scheme that the Service is spoken to with. MUST be https or http. Absent
	// means https.
	//
	// +optional
	Scheme URLScheme `json:"scheme,omitempty"`
}

// KeyReference names one key of a Secret or ConfigMap in the same namespace.
type KeyReference struct {
	// name of the object that holds the key.
	//
	// +required
	Name ObjectName `json:"name"`

	// key inside the object. Example: "token".
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// HeaderFrom is one request header whose value comes from a Secret. The kernel
// sends it; a harness never sees it.
type HeaderFrom struct {
	// name of the header. Headers that frame or route a request are refused.
	// Example: "Authorization".
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern="^[-!#$%&'*+.^_`|~0-9A-Za-z]+$"
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['connection', 'content-length', 'content-type', 'expect', 'host', 'mcp-protocol-version', 'mcp-session-id', 'te', 'trailer', 'transfer-encoding', 'upgrade'])",message="must not be a header that frames or routes the request"
	Name string `json:"name"`

	// secretKeyRef holds the header's value.
	//
	// +required
	SecretKeyRef KeyReference `json:"secretKeyRef"`

	// prefix is put before the value. Example: "Bearer ".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[\x20-\x7e]*$`
	Prefix string `json:"prefix,omitempty"`
}

// CASource holds PEM certificates to verify a server with. Exactly one of
// secretKeyRef and configMapKeyRef MUST be set.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.configMapKeyRef)",message="exactly one of secretKeyRef and configMapKeyRef must be set"
type CASource struct {
	// secretKeyRef names a key of a Secret. Example: {name: notion-ca, key: ca.crt}.
	//
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`

	// configMapKeyRef names a key of a ConfigMap.
	//
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
}

// TLSConfig says how a server is verified and how the kernel identifies itself.
// Verification cannot be switched off.
type TLSConfig struct {
	// caFrom holds the certificates that the server's certificate must chain to.
	// Absent means the installation's own CA for a provider and the system's
	// roots for an MCP server.
	//
	// +optional
	CAFrom *CASource `json:"caFrom,omitempty"`

	// clientCertificateFrom names a Secret of type kubernetes.io/tls in the same
	// namespace whose certificate the kernel presents. Absent means the
	// manager's own client certificate for a provider and none for an MCP server.
	//
	// +optional
	ClientCertificateFrom *LocalReference `json:"clientCertificateFrom,omitempty"`
}

// Endpoint is a server that the kernel is a client of. Exactly one of url and
// service MUST be set. Redirects are followed only within the same origin.
//
// +kubebuilder:validation:XValidation:rule="has(self.url) != has(self.service)",message="exactly one of url and service must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.headersFrom) || self.headersFrom.size() == 0 || (has(self.url) ? self.url.startsWith('https://') : (!has(self.service) || !has(self.service.scheme) || self.service.scheme == 'https'))",message="headersFrom needs an https endpoint: credentials are not sent in clear text"
// +kubebuilder:validation:XValidation:rule="!has(self.tls) || (has(self.url) ? self.url.startsWith('https://') : (!has(self.service) || !has(self.service.scheme) || self.service.scheme == 'https'))",message="tls needs an https endpoint"
type Endpoint struct {
	// url of the server: https or http, a host, and neither user information nor
	// a fragment. Example: "https://mcp.example.com/mcp".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s/?#@]+([/?][^\s#]*)?$`
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="must be a URL"
	URL string `json:"url,omitempty"`

	// service is a Kubernetes Service that the server is reached through.
	//
	// +optional
	Service *ServiceReference `json:"service,omitempty"`

	// headersFrom are request headers with values from Secrets.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	HeadersFrom []HeaderFrom `json:"headersFrom,omitempty"`

	// timeoutSeconds is how long one request may take. Absent means 30.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// tls says how the server is verified and how the kernel identifies itself.
	//
	// +optional
	TLS *TLSConfig `json:"tls,omitempty"`
}
