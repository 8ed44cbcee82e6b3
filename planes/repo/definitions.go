package repo

import (
	"github.com/sharedos-dev/operator/kernel"
	"github.com/sharedos-dev/operator/kernel/contract"
)

// Building blocks of the schemas, as JSON text.
const (
	segments = `{"type":"array","maxItems":64,"items":{"type":"string","minLength":1,"maxLength":256}}`
	pathIn   = `"path":{"type":"array","maxItems":64,"items":{"type":"string","minLength":1,"maxLength":256},` +
		`"description":"The repository as a list of path segments."}`
	pathOut  = `"path":` + segments
	pathspec = `{"type":"array","minItems":1,"maxItems":256,"items":` + segments +
		`,"description":"Paths inside the repository, each a list of segments. A folder stands for all that is in it."}`

	state     = `{"type":"string","enum":["unmodified","untracked","modified","added","deleted","other"]}`
	id        = `{"type":"string","pattern":"^[0-9a-f]{40}$"}`
	signature = `{"type":"object","required":["name","email","when"],"properties":{"name":{"type":"string"},` +
		`"email":{"type":"string"},"when":{"type":"string","format":"date-time"}}}`
	commit = `{"type":"object","required":["id","parents","author","committer","message"],"properties":{"id":` + id +
		`,"parents":{"type":"array","items":` + id + `},"author":` + signature + `,"committer":` + signature +
		`,"message":{"type":"string"}}}`
)

// Tools binds the five tools to the provider that serves the plane, sorted by name.
func Tools(provider kernel.ResourceProvider) []kernel.Tool {
	definitions := Definitions()
	tools := make([]kernel.Tool, len(definitions))
	for i := range definitions {
		tools[i] = kernel.NewResourceTool(definitions[i], provider)
	}
	return tools
}

// Definitions returns the five definitions, sorted by name. Each call returns
// fresh ones.
func Definitions() []contract.ToolDefinition {
	return []contract.ToolDefinition{
		define(ActionCommit, contract.ClassWrite, "Record what is staged as a commit of the current branch, in the name of the caller.",
			input(`"path","message"`, pathIn+`,"message":{"type":"string","minLength":1,"maxLength":8192,"description":"The commit message."}`),
			output(`"path","commit"`, pathOut+`,"commit":`+commit)),
		define(ActionDiff, contract.ClassRead, "Show what was changed in the working tree since it was staged or, with staged, what was staged since the last commit.",
			input(`"path"`, pathIn+`,"staged":{"type":"boolean","default":false,"description":"Compare what is staged with the last commit."},"pathspec":`+pathspec),
			output(`"path","patch","files","truncated"`, pathOut+`,"patch":{"type":"string"},"files":{"type":"integer","minimum":0},"truncated":{"type":"boolean"}`)),
		define(ActionLog, contract.ClassRead, "List the commits of the current branch, the newest first.",
			input(`"path"`, pathIn+`,"maxCount":{"type":"integer","minimum":1,"maximum":1000,"default":20,"description":"How many commits to return at most."}`),
			output(`"path","commits","truncated"`, pathOut+`,"commits":{"type":"array","items":`+commit+`},"truncated":{"type":"boolean"}`)),
		define(ActionStage, contract.ClassWrite, "Stage files of the working tree for the next commit, also those that were deleted.",
			input(`"path","pathspec"`, pathIn+`,"pathspec":`+pathspec),
			output(`"path","staged"`, pathOut+`,"staged":{"type":"array","items":`+segments+`}`)),
		define(ActionStatus, contract.ClassRead, "Show the branch and the files that differ from the last commit.",
			input(`"path"`, pathIn),
			output(`"path","clean","files","truncated"`, pathOut+`,"branch":{"type":"string"},"head":`+id+`,"clean":{"type":"boolean"},"files":{"type":"array","items":`+
				`{"type":"object","required":["path","staged","worktree"],"properties":{`+pathOut+`,"staged":`+state+`,"worktree":`+state+`}}},"truncated":{"type":"boolean"}`)),
	}
}

func input(required, properties string) contract.Object {
	return contract.Object(`{"type":"object","additionalProperties":false,"required":[` + required + `],"properties":{` + properties + `}}`)
}

// output is an open object schema, so that a field may be added later.
func output(required, properties string) contract.Object {
	return contract.Object(`{"type":"object","required":[` + required + `],"properties":{` + properties + `}}`)
}

func define(action string, class contract.ReadWrite, description string, in, out contract.Object) contract.ToolDefinition {
	readOnly, no := class == contract.ClassRead, false
	d := contract.ToolDefinition{
		Name: Namespace + "." + action, Description: description, Namespace: Namespace, Source: Source,
		ReadWrite: class, InputSchema: in, OutputSchema: out,
		RequiredCapability: contract.CapabilityRequirement{
			Resource: contract.ResourceRef{Namespace: Namespace, Path: contract.Path{}}, Action: action,
		},
		Annotations: &contract.ToolAnnotations{ReadOnly: &readOnly, Destructive: &no},
	}
	if readOnly {
		d.Annotations.Idempotent = &readOnly
	}
	return d
}
