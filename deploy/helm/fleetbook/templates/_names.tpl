{{/* Names and labels. Every name begins with "fleetbook" or the release, and has at most 63 characters with its suffix. */}}

{{- define "fleetbook.fullname" -}}
{{- $name := ternary .Release.Name (printf "%s-fleetbook" .Release.Name) (contains "fleetbook" .Release.Name) -}}
{{- $name | trunc 44 | trimSuffix "-" -}}
{{- end }}

{{/* Labels that never change: selectors cannot be updated. Call it with (list $ "component"). */}}
{{- define "fleetbook.selector" -}}
app.kubernetes.io/name: fleetbook
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "fleetbook.labels" -}}
{{- $root := index . 0 -}}
{{ include "fleetbook.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The metadata of an object. Call it with (list $ "component" "suffix of the name"). */}}
{{- define "fleetbook.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "fleetbook.fullname" $root }}{{ index . 2 }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "fleetbook.labels" . | nindent 2 }}
{{- end }}

{{- define "fleetbook.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* "true" if programs with OPS_TOKEN may use the operators' port. */}}
{{- define "fleetbook.opsOpen" -}}
{{- if .Values.secretSettings.OPS_TOKEN }}true{{ end }}
{{- end }}

{{- define "fleetbook.workerAccount" -}}
{{- .Values.workers.serviceAccount.name | default (printf "%s-workers" (include "fleetbook.fullname" .)) }}
{{- end }}
