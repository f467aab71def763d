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

{{/* The secrets of a component as JSON: its own ones, and the common ones that it needs. Call it with (list $ "component"). */}}
{{- define "fleetbook.secretsOf" -}}
{{- $component := index . 1 -}}
{{- with index . 0 -}}
{{- $own := (index .Values $component).secretSettings -}}
{{- $all := merge (dict) $own .Values.secretSettings -}}
{{- if eq $component "migration" -}}
{{- $all = pick $all "DATABASE_URL" "DIRECT_DATABASE_URL" -}}
{{- else if eq $component "readers" -}}
{{- $all = omit $all "DIRECT_DATABASE_URL" "QUEUE_REDIS_URL" "OPS_OIDC_CLIENT_SECRET" "ALERT_WEBHOOK_URL" "ALERT_WEBHOOK_SECRET" -}}
{{- else -}}
{{- $all = omit $all "READER_DATABASE_URL" -}}
{{- end -}}
{{ toJson $all }}
{{- end }}
{{- end }}

{{/* Variables from Secrets. Call it with (list $ "component"). */}}
{{- define "fleetbook.secretEnv" -}}
{{- $component := index . 1 -}}
{{- $secrets := include "fleetbook.secretsOf" . | fromJson -}}
{{- with index . 0 -}}
{{- $name := include "fleetbook.fullname" . -}}
{{- if not $secrets.DATABASE_URL }}
{{- if eq .Values.database.mode "trial" }}
{{ include "fleetbook.fromSecret" (list "DATABASE_URL" (printf "%s-trial" $name) "DATABASE_URL") }}
{{- else if eq .Values.database.mode "cloudnativepg" }}
{{ include "fleetbook.fromSecret" (list "DATABASE_URL" (printf "%s-db-app" $name) "uri") }}
{{- end }}
{{- end }}
{{- if and (eq .Values.redis.mode "trial") (ne $component "migration") }}
{{- if eq $component "workers" }}
{{ include "fleetbook.fromSecret" (list "QUEUE_REDIS_URL" (printf "%s-trial" $name) "QUEUE_REDIS_URL") }}
{{- end }}
{{ include "fleetbook.fromSecret" (list "CACHE_REDIS_URL" (printf "%s-trial" $name) "CACHE_REDIS_URL") }}
{{- end }}
{{- range $setting, $secret := $secrets }}
{{ include "fleetbook.fromSecret" (list $setting $secret.name ($secret.key | default $setting)) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Variables of readers and workers. Call it with (list $ "component"). */}}
{{- define "fleetbook.env" -}}
- name: HOST
  value: 0.0.0.0
- name: PORT
  value: "3000"
- name: OPS_PORT
  value: "3001"
{{ include "fleetbook.secretEnv" . | trim }}
{{- $isReader := eq (index . 1) "readers" }}
{{- with index . 0 }}
{{- range $setting, $value := .Values.settings }}
{{- /* Only workers sign operators in and send alerts, and only they have these secrets. */}}
{{- if not (and $isReader (regexMatch "^(OPS_OIDC|ALERT)_" $setting)) }}
- name: {{ $setting }}
  value: {{ include "fleetbook.settingValue" $value }}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}
