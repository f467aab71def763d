{{/* A StatefulSet with one pod, its Service and its network policy. Call it with (list $ server), see trial.yaml. */}}
{{- define "fleetbook.trialServer" }}
{{- $root := index . 0 }}
{{- with index . 1 }}
{{- $of := list $root .component (printf "-%s" .component) }}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "fleetbook.metadata" $of | nindent 2 }}
spec:
  selector:
    {{- include "fleetbook.selector" $of | nindent 4 }}
  ports:
    - { name: server, port: {{ .port }}, targetPort: server }
---
# For a trial only: one server, without replica, backup and upgrade.
apiVersion: apps/v1
kind: StatefulSet
metadata:
  {{- include "fleetbook.metadata" $of | nindent 2 }}
spec:
  replicas: 1
  serviceName: {{ include "fleetbook.fullname" $root }}-{{ .component }}
  selector:
    matchLabels:
      {{- include "fleetbook.selector" $of | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "fleetbook.labels" $of | nindent 8 }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: 60
      {{- include "fleetbook.podSecurity" .user | nindent 6 }}
      {{- include "fleetbook.pullSecrets" $root | nindent 6 }}
      containers:
        - name: server
          image: {{ .image }}
          {{- with .args }}
          args:
            {{- range . }}
            - {{ . | quote }}
            {{- end }}
          {{- end }}
          ports:
            - { name: server, containerPort: {{ .port }} }
          env:
            {{- include "fleetbook.fromSecret" (list .passwordVariable (printf "%s-trial" (include "fleetbook.fullname" $root)) .passwordVariable) | nindent 12 }}
            {{- with .env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- range $probe, $failures := dict "startupProbe" 60 "readinessProbe" 3 "livenessProbe" 6 }}
          {{ $probe }}:
            exec:
              command: {{ toJson (index $ 1).health }}
            periodSeconds: 5
            timeoutSeconds: 5
            failureThreshold: {{ $failures }}
          {{- end }}
          resources:
            requests: { cpu: 100m, memory: 128Mi }
            limits: { memory: {{ .memory }} }
          {{- include "fleetbook.containerSecurity" . | nindent 10 }}
          volumeMounts:
            - { name: data, mountPath: {{ .path }} }
            - { name: tmp, mountPath: /tmp }
            {{- with .run }}
            - { name: run, mountPath: {{ . }} }
            {{- end }}
      volumes:
        - name: tmp
          emptyDir: { sizeLimit: 64Mi }
        {{- if .run }}
        - name: run
          emptyDir: { sizeLimit: 16Mi }
        {{- end }}
        {{- if not .size }}
        - name: data
          emptyDir: { sizeLimit: 16Mi }
        {{- end }}
  {{- if .size }}
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes: [ReadWriteOnce]
        resources:
          requests: { storage: {{ .size }} }
  {{- end }}
{{- if $root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "fleetbook.metadata" $of | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "fleetbook.selector" $of | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    - ports:
        - { port: {{ .port }}, protocol: TCP }
      from:
        - podSelector:
            matchLabels:
              app.kubernetes.io/name: fleetbook
              app.kubernetes.io/instance: {{ $root.Release.Name }}
{{- end }}
{{- end }}
{{- end }}
