package v1alpha1

// The condition type of a Harness.
const (
	// HarnessReady says whether turns can be run with the Harness.
	HarnessReady ConditionType = "Ready"
)

// Reasons of [HarnessReady] when it is True.
const (
	// HarnessReasonValid means that the template passed every check and the dry run.
	HarnessReasonValid ConditionReason = "Valid"
)

// Reasons of [HarnessReady] when it is False.
const (
	// HarnessReasonContainerMissing means that the template has no container
	// named harness, or more than one.
	HarnessReasonContainerMissing ConditionReason = "ContainerMissing"

	// HarnessReasonCommandMissing means that the container named harness does not
	// set command, so that it cannot be wrapped.
	HarnessReasonCommandMissing ConditionReason = "CommandMissing"

	// HarnessReasonTemplateForbidden means that the template asks for something
	// that would let the harness around the bridge, such as the host's network or
	// a token of its own for the kernel. The message names it.
	HarnessReasonTemplateForbidden ConditionReason = "TemplateForbidden"

	// HarnessReasonTemplateInvalid means that the API server refused a pod made
	// from the template in a dry run, or that it cannot be read. The message has
	// the field.
	HarnessReasonTemplateInvalid ConditionReason = "TemplateInvalid"
)

// Reasons of [HarnessReady] when it is Unknown.
const (
	// HarnessReasonPending means that the Harness was not examined yet.
	HarnessReasonPending ConditionReason = "Pending"
)
