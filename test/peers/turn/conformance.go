package turn

import (
	"context"

	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// pixel is a PNG of one pixel, silence an empty WAV.
const (
	pixel   = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
)

const anyInput = `{"type":"object"}`

// ConformanceTools are the tools that the server scenarios of the conformance suite
// call, as a broker would publish them.
func ConformanceTools() []kernel.Tool {
	const (
		text  = `{"type":"text","text":"Several kinds of content."}`
		image = `{"type":"image","data":"` + pixel + `","mimeType":"image/png"}`
		audio = `{"type":"audio","data":"` + silence + `","mimeType":"audio/wav"}`
		embed = `{"type":"resource","resource":{"uri":"test://resource","mimeType":"text/plain","text":"A resource."}}`
	)
	content := func(blocks string) func() (kernel.Output, error) {
		return func() (kernel.Output, error) {
			return kernel.Output{
				Value:    contract.Value(`{"content":[` + blocks + `]}`),
				Metadata: contract.Object(`{"sharedos/content":"mcp"}`),
			}, nil
		}
	}
	return []kernel.Tool{
		brokered("test_simple_text", anyInput, func() (kernel.Output, error) {
			return kernel.Output{Value: contract.Value(`"This is a simple text response for testing."`)}, nil
		}),
		brokered("test_image_content", anyInput, content(image)),
		brokered("test_audio_content", anyInput, content(audio)),
		brokered("test_embedded_resource", anyInput, content(embed)),
		brokered("test_multiple_content_types", anyInput, content(text+","+image+","+embed)),
		brokered("test_error_handling", anyInput, func() (kernel.Output, error) {
			return kernel.Output{}, &kernel.Failure{Err: contract.ProtocolError{
				Code: "upstream_failed", Message: "This tool intentionally returns an error for testing",
			}}
		}),
		brokered("json_schema_2020_12_tool",
			`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",`+
				`"$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},`+
				`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}`,
			func() (kernel.Output, error) { return kernel.Output{Value: contract.Value(`"ok"`)}, nil }),
	}
}

// Noop is a tool that does nothing.
func Noop() kernel.Tool {
	return brokered("noop", anyInput, func() (kernel.Output, error) {
		return kernel.Output{Value: contract.Value(`"ok"`)}, nil
	})
}

func brokered(name, schema string, handle func() (kernel.Output, error)) kernel.Tool {
	ceiling := need("brokered", "call")
	return kernel.Tool{
		Definition: contract.ToolDefinition{
			Name: name, Description: "A brokered tool.", Namespace: "brokered", Source: "conformance",
			ReadWrite: contract.ClassRead, InputSchema: contract.Object(schema), RequiredCapability: ceiling,
		},
		Requirement: func(kernel.Arguments, contract.AccessContext) (contract.CapabilityRequirement, error) {
			return ceiling, nil
		},
		Handle: func(context.Context, kernel.ToolInvocation) (kernel.Output, error) { return handle() },
	}
}
