{{/* Stops on values that contradict each other. The schema checks each value alone. */}}

{{/* Bytes of a quantity such as 640Mi. */}}
{{- define "fleetbook.bytes" -}}
{{- $text := toString . -}}
{{- $number := regexFind "^[0-9.]+" $text | float64 -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- if hasKey $units $unit }}{{ mulf $number (index $units $unit) | int64 }}{{ else }}0{{ end }}
{{- end }}

{{- define "fleetbook.checks" -}}
{{- $secrets := .Values.secretSettings -}}
{{- if not .Values.image.repository }}
{{- fail "image.repository is empty; set it to the repository of the image, such as registry.example.com/fleetbook" }}
{{- end }}
{{- range $component := list "readers" "workers" (ternary "migration" "workers" .Values.migration.enabled) }}
{{- $of := include "fleetbook.secretsOf" (list $ $component) | fromJson }}
{{- if and (eq $.Values.database.mode "external") (not $of.DATABASE_URL) }}
{{- fail (printf "%s need an address of PostgreSQL, and secretSettings.DATABASE_URL is missing; set it, or %s.secretSettings.DATABASE_URL, to {name, key} of the Secret with the URL, or set database.mode to cloudnativepg or trial" $component $component) }}
{{- end }}
{{- if and (eq $.Values.redis.mode "external") (ne $component "migration") (not (or $of.REDIS_URL (and (or $of.QUEUE_REDIS_URL (eq $component "readers")) $of.CACHE_REDIS_URL))) }}
{{- fail (printf "%s need addresses of Redis: secretSettings.QUEUE_REDIS_URL and secretSettings.CACHE_REDIS_URL are missing; set both, or secretSettings.REDIS_URL, or set redis.mode to trial" $component) }}
{{- end }}
{{- end }}
{{- if and (ne .Values.database.mode "external") $secrets.DATABASE_URL }}
{{- fail (printf "database.mode is %s, which makes an own DATABASE_URL; remove secretSettings.DATABASE_URL, or set database.mode to external" .Values.database.mode) }}
{{- end }}
{{- if and (eq .Values.redis.mode "trial") (or $secrets.REDIS_URL $secrets.QUEUE_REDIS_URL $secrets.CACHE_REDIS_URL) }}
{{- fail "redis.mode is trial, which makes own URLs of Redis; remove them from secretSettings, or set redis.mode to external" }}
{{- end }}
{{- if not $secrets.OPS_TOKEN }}
{{- range $value, $isOn := dict "monitoring.serviceMonitor.enabled" .Values.monitoring.serviceMonitor.enabled "operators.ingress.enabled" .Values.operators.ingress.enabled }}
{{- if $isOn }}
{{- fail (printf "%s is true, but the operators' port is closed; set secretSettings.OPS_TOKEN to {name, key} of a Secret with at least 32 random characters" $value) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.operatorsFrom) }}
{{- range $value, $isOn := dict "monitoring.serviceMonitor.enabled" .Values.monitoring.serviceMonitor.enabled "operators.ingress.enabled" .Values.operators.ingress.enabled }}
{{- if $isOn }}
{{- fail (printf "%s is true, but networkPolicy.operatorsFrom admits no pod to the operators' port; name the namespace of Prometheus or of the ingress controller, such as [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]" $value) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $value, $given := dict "ingress" .Values.ingress "operators.ingress" .Values.operators.ingress }}
{{- if and $given.enabled (not $given.hosts) }}
{{- fail (printf "%s.hosts is empty; name the hosts, or set %s.enabled to false" $value $value) }}
{{- end }}
{{- end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}
{{- fail "httpRoute.parentRefs is empty; name the Gateway, such as [{name: public, namespace: gateways}]" }}
{{- end }}
{{- with .Values.sources }}
{{- if gt (len (without (list .existingConfigMap .existingSecret (ternary "file" "" (not (empty .file)))) "")) 1 }}
{{- fail "sources names more than one file; set only one of sources.file, sources.existingConfigMap and sources.existingSecret" }}
{{- end }}
{{- end }}
{{- with .Values.readers.autoscaling }}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) }}
{{- fail "readers.autoscaling.minReplicas exceeds maxReplicas; raise maxReplicas" }}
{{- end }}
{{- end }}
{{- include "fleetbook.memoryCheck" . }}
{{- end }}

{{/* A reader above its memory limit is killed under load, long after the installation. `max` processes cannot be counted. */}}
{{- define "fleetbook.memoryCheck" -}}
{{- $processes := .Values.settings.PROCESSES | default 1 -}}
{{- if ne (toString $processes) "max" }}
{{- $documents := .Values.settings.MEMORY_LIMIT | default 256000000 | int64 -}}
{{- $needed := mul (int64 $processes) (add $documents 128000000) -}}
{{- $limit := include "fleetbook.bytes" .Values.readers.resources.limits.memory | int64 -}}
{{- if and $limit (lt $limit $needed) }}
{{- fail (printf "readers.resources.limits.memory is %v, less than PROCESSES × (MEMORY_LIMIT + 128 MB) = %d bytes; raise it, or lower settings.MEMORY_LIMIT or settings.PROCESSES" .Values.readers.resources.limits.memory $needed) }}
{{- end }}
{{- end }}
{{- end }}
