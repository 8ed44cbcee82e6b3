{{- define "gvDetails" -}}
{{- $gv := . -}}
## {{ $gv.GroupVersionString }}

| Kind | |
| --- | --- |
{{- range $gv.SortedKinds }}
{{- $kind := $gv.TypeForKind . }}
| {{ markdownRenderTypeLink $kind }} | {{ markdownRenderFieldDoc $kind.Doc }} |
{{- end }}
{{ range $gv.SortedTypes }}
{{- template "type" . }}
{{- end }}
{{- end -}}
