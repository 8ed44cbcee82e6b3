{{- define "type" -}}
{{- $type := . -}}
{{- if markdownShouldRenderType $type }}
### {{ $type.Name }}
{{ if $type.IsAlias }}
Type: {{ markdownRenderTypeLink $type.UnderlyingType }}
{{ end }}
{{ $type.Doc }}
{{ if $type.Validation }}
Validation:
{{ range $type.Validation }}
- {{ . }}
{{- end }}
{{ end }}
{{- if $type.References }}
Used in: {{ range $i, $ref := $type.SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $ref }}{{ end }}
{{ end }}
{{- if $type.Members }}
| Field | Meaning | Validation |
| --- | --- | --- |
{{- if $type.GVK }}
| `apiVersion` _string_ | `{{ $type.GVK.Group }}/{{ $type.GVK.Version }}` | |
| `kind` _string_ | `{{ $type.GVK.Kind }}` | |
{{- end }}
{{- range $type.Members }}
| `{{ .Name }}` _{{ markdownRenderType .Type }}_ | {{ template "type_members" . }} | {{ range .Validation }}{{ markdownRenderFieldDoc . }}<br />{{ end }} |
{{- end }}
{{ end }}
{{- if $type.EnumValues }}
| Value | Meaning |
| --- | --- |
{{- range $type.EnumValues }}
| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc }} |
{{- end }}
{{ end }}
{{- end }}
{{- end -}}
