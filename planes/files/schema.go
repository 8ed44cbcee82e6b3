package files

import (
	"strings"

	"github.com/sharedos-dev/operator/kernel/contract"
)

// Building blocks of the schemas. They are JSON text, so that what is published
// is exactly what is written here.
const (
	segments = `{"type":"array","maxItems":64,"items":{"type":"string","minLength":1,"maxLength":256}`

	pathIn      = `"path":` + segments + `,"description":"The path as a list of segments; an empty list is the root."}`
	pathInBelow = `"path":` + segments + `,"minItems":1,"description":"The path as a list of segments, at least one."}`
	pathOut     = `"path":` + segments + `}`

	instant = `{"type":"string","format":"date-time"}`
	count   = `{"type":"integer","minimum":0}`
	version = `{"type":"string","pattern":"^[0-9a-f]{64}$"}`

	expectedVersion = `"expectedVersion":{"type":"string","minLength":1,"maxLength":256,` +
		`"description":"The version last seen; if the file has another one now, nothing changes and the call fails with version_conflict."}`
	content = `"content":{"type":"string","description":"The content: text, or base64 with encoding base64."},` +
		`"encoding":{"type":"string","enum":["utf-8","base64"],"default":"utf-8","description":"How content is written."}`
	metadata = `"metadata":{"type":"object","description":"A small JSON object kept beside the file and shown by files.stat."}`

	fileType = `{"type":"string","enum":["file","directory","symlink","other"]}`
	lines    = `{"type":"array","items":{"type":"string"}}`

	snapshot = `{"type":"object","required":["id","type","createdAt","files","bytes"],"properties":{` +
		`"id":{"type":"string"},"label":{"type":"string"},"type":` + fileType + `,"createdAt":` + instant +
		`,"files":` + count + `,"bytes":` + count + `}}`

	written = `{"type":"object","required":["path","size","version","modifiedAt","created"],"properties":{` + pathOut +
		`,"size":` + count + `,"version":` + version + `,"modifiedAt":` + instant + `,"created":{"type":"boolean"}}}`
)

// input is a closed object schema of properties, of which path and the named ones
// are required.
func input(required []string, properties ...string) contract.Object {
	var names strings.Builder
	names.WriteString(`"path"`)
	for _, name := range required {
		names.WriteString(`,"` + name + `"`)
	}
	return contract.Object(`{"type":"object","additionalProperties":false,"required":[` + names.String() + `],"properties":{` +
		strings.Join(properties, ",") + `}}`)
}

// output is an open object schema, so that a field may be added later.
func output(required string, properties ...string) contract.Object {
	names := `"` + strings.Join(strings.Fields(required), `","`) + `"`
	return contract.Object(`{"type":"object","required":[` + names + `],"properties":{` + strings.Join(properties, ",") + `}}`)
}

func text(name, description string, limit string) string {
	return `"` + name + `":{"type":"string","minLength":1,"maxLength":` + limit + `,"description":"` + description + `"}`
}

func bounded(name, low, high, standard, description string) string {
	return `"` + name + `":{"type":"integer","minimum":` + low + `,"maximum":` + high + `,"default":` + standard +
		`,"description":"` + description + `"}`
}

func flag(name, description string) string {
	return `"` + name + `":{"type":"boolean","default":false,"description":"` + description + `"}`
}
