{{- define "type_members" -}}
{{- if eq .Name "metadata" -}}
Name, labels and annotations, as on every Kubernetes object.
{{- else -}}
{{ markdownRenderFieldDoc .Doc }}
{{- end -}}
{{- end -}}
