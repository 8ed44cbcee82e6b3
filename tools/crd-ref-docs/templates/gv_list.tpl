{{- define "gvList" -}}
# API reference

Made from the Go types by `make docs`. Do not edit. What the conditions of these
kinds mean is in [conditions.md](conditions.md).
{{ range . }}
{{ template "gvDetails" . }}
{{- end }}
{{- end -}}
