{{/* Variables of a container. */}}

{{/* A setting of the product. Numbers in a file of values are floats, which would print as 2.56e+08; YAML reads `off` as false. */}}
{{- define "fleetbook.settingValue" -}}
{{- if or (kindIs "float64" .) (kindIs "int64" .) (kindIs "int" .) }}{{ printf "%d" (int64 .) | quote }}
{{- else if kindIs "bool" . }}{{ ternary "on" "off" . | quote }}
{{- else }}{{ . | quote }}{{ end }}
{{- end }}

{{/* A variable from a Secret. Call it with (list "NAME" "secret" "key"). */}}
{{- define "fleetbook.fromSecret" -}}
- name: {{ index . 0 }}
  valueFrom:
    secretKeyRef:
      name: {{ index . 1 }}
      key: {{ index . 2 }}
{{- end }}

{{/* Addresses of PostgreSQL. The migration gets these alone. */}}
{{- define "fleetbook.databaseEnv" -}}
{{- $name := include "fleetbook.fullname" . -}}
{{- if eq .Values.database.mode "trial" -}}
{{ include "fleetbook.fromSecret" (list "DATABASE_URL" (printf "%s-trial" $name) "DATABASE_URL") }}
{{- else if eq .Values.database.mode "cloudnativepg" -}}
{{ include "fleetbook.fromSecret" (list "DATABASE_URL" (printf "%s-db-app" $name) "uri") }}
{{- end }}
{{- range $setting := list "DATABASE_URL" "DIRECT_DATABASE_URL" }}
{{- with index $.Values.secretSettings $setting }}
{{ include "fleetbook.fromSecret" (list $setting .name (.key | default $setting)) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Variables of readers and workers, without those of one component. */}}
{{- define "fleetbook.env" -}}
{{- $name := include "fleetbook.fullname" . -}}
- name: HOST
  value: 0.0.0.0
- name: PORT
  value: "3000"
- name: OPS_PORT
  value: "3001"
{{ include "fleetbook.databaseEnv" . | trim }}
{{- if eq .Values.redis.mode "trial" }}
{{ include "fleetbook.fromSecret" (list "QUEUE_REDIS_URL" (printf "%s-trial" $name) "QUEUE_REDIS_URL") }}
{{ include "fleetbook.fromSecret" (list "CACHE_REDIS_URL" (printf "%s-trial" $name) "CACHE_REDIS_URL") }}
{{- end }}
{{- range $setting, $secret := omit .Values.secretSettings "DATABASE_URL" "DIRECT_DATABASE_URL" }}
{{ include "fleetbook.fromSecret" (list $setting $secret.name ($secret.key | default $setting)) }}
{{- end }}
{{- range $setting, $value := .Values.settings }}
- name: {{ $setting }}
  value: {{ include "fleetbook.settingValue" $value }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
