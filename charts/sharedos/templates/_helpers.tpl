{{- define "sharedos.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* The prefix of every name. It stays short enough for the longest suffix. */}}
{{- define "sharedos.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Labels that select pods; they never change during the life of a release. */}}
{{- define "sharedos.selectorLabels" -}}
app.kubernetes.io/name: {{ include "sharedos.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "sharedos.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{ include "sharedos.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* An image reference: the override, else prefix/name:tag. */}}
{{- define "sharedos.image" -}}
{{- if .override -}}
{{- .override -}}
{{- else -}}
{{- printf "%s/%s:%s" .root.Values.images.prefix .name (default .root.Chart.AppVersion .root.Values.images.tag) -}}
{{- end -}}
{{- end }}

{{- define "sharedos.managerUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "sharedos.fullname" . }}-manager
{{- end }}

{{- define "sharedos.imagePullSecrets" -}}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* What every pod and container of ours is confined to: Pod Security "restricted". */}}
{{- define "sharedos.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "sharedos.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop:
    - ALL
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* Nine tenths of a container's memory limit as the Go runtime reads it; empty without a limit in Ki, Mi or Gi. */}}
{{- define "sharedos.softMemoryLimit" -}}
{{- $limit := dig "limits" "memory" "" (default dict .) | toString -}}
{{- if regexMatch "^[1-9][0-9]*(Ki|Mi|Gi)$" $limit -}}
{{- $unit := get (dict "Ki" 1 "Mi" 1024 "Gi" 1048576) (regexFind "[KMG]i$" $limit) -}}
{{- div (mul (regexFind "^[0-9]+" $limit | int64) $unit 9) 10 }}KiB
{{- end -}}
{{- end }}
